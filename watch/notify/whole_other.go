//go:build !linux

package notify

// openForWriting reports whether some process has a file open for writing. Only Linux tells.
func openForWriting(string) (open, known bool) { return false, false }
