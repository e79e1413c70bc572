//go:build !linux

package safefile

import "os"

// checkFileSystem accepts all files: on these systems, a file made by the kernel has an end, and the limit bounds
// the read.
func checkFileSystem(*os.File) error { return nil }
