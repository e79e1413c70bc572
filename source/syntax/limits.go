package syntax

// MaxDepth bounds how deeply messages are nested, an Any counting twice. Envoy
// refuses JSON that is nested over 100 deep. Without a limit the time to read
// nested Anys grows with the square of their depth.
const MaxDepth = 200

// MaxBytes bounds a file, and what its aliases expand to.
const MaxBytes = 128 << 20

// MaxFindings bounds the findings of a file, of each severity.
const MaxFindings = 10_000
