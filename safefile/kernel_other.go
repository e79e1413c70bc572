//go:build !linux

package safefile

import "os"

// judgeFileSystem has nothing to refuse: the files that a kernel makes up here have
// an end, and the limit bounds them.
func judgeFileSystem(*os.File) error { return nil }
