//go:build !linux

package notify

// openForWriting always returns unknown: only Linux can tell.
func openForWriting(string) (open, known bool) { return false, false }
