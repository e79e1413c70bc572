package trial

import (
	"context"
	"os"

	"xdspub/internal/crash"
)

// Answer is an Envoy's reaction to a bootstrap. Envoy accepts the bootstrap if all fields are empty.
type Answer struct {
	// Refusal is Envoy's reason for a refusal, which may quote the bootstrap.
	Refusal string
	// Crash is the cause of Envoy's death.
	Crash string
	// Hang says that Envoy did not end within its time limit.
	Hang string
}

// Taken reports whether Envoy accepts the bootstrap.
func (a Answer) Taken() bool { return a == Answer{} }

// Ask asks Envoy about a bootstrap in JSON by envoy --mode validate. Envoy reads the bootstrap from a pipe, so that
// no file has it. The error is not nil if Envoy gave no answer, or if ctx has ended. Envoy ends with ctx.
func (e Envoy) Ask(ctx context.Context, bootstrap []byte) (Answer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Answer{}, err
	}
	written := make(chan error, 1)
	go crash.Guard(func() {
		_, _ = w.Write(bootstrap) // fails if Envoy ends early; the output of Envoy has the reason
		w.Close()                 // Envoy reads to the end of the file
		written <- nil
	}, func(e *crash.Error) { written <- e })()
	// Envoy reads no other file below /dev, and takes a name without a suffix for JSON.
	ended := e.validate(ctx, "/dev/fd/3", r)
	w.Close() // ends Write, if a child of Envoy still has the other end open, and does not read
	if err := <-written; err != nil {
		return Answer{}, err
	}
	return ended.answer(ctx)
}
