package safefile

import (
	"io/fs"
	"syscall"
	"time"
)

// Signature is the metadata that identifies a file and its content. If a file's Signature equals an earlier
// one that was Settled, the content is the same.
type Signature struct {
	device, inode uint64
	size          int64
	modified      int64 // in ns; anybody who may write the file can set it
	changed       int64 // in ns; nobody can set it
}

// NewSignature returns the Signature of a file with these facts. The times are in ns since 1970.
func NewSignature(device, inode uint64, size, modified, changed int64) Signature {
	return Signature{device, inode, size, modified, changed}
}

// Changed returns when the file, its mode or its owner was last changed.
func (s Signature) Changed() time.Time { return time.Unix(0, s.changed) }

// Size returns the size of the file.
func (s Signature) Size() int64 { return s.size }

// SameFile reports whether both Signatures belong to the same file, whose content may differ.
func (s Signature) SameFile(o Signature) bool { return s.device == o.device && s.inode == o.inode }

// Device returns the number of the device that the file is on.
func (s Signature) Device() uint64 { return s.device }

// SignatureOf returns the Signature of the file that info describes. Where the system tells too
// little it returns the zero Signature, which is never Settled.
func SignatureOf(info fs.FileInfo) Signature {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Signature{}
	}
	return Signature{
		device: uint64(sys.Dev), inode: uint64(sys.Ino), size: info.Size(),
		modified: info.ModTime().UnixNano(), changed: changed(sys),
	}
}

// granularity exceeds the clock steps of file systems: FAT has two seconds. The rest is for a file server
// whose clock is behind.
const granularity = 10 * time.Second

// Settled reports whether every later change of the file gives another Signature; now is a time before the
// read. A file that changed just before can change again within the same clock step of the file system.
func (s Signature) Settled(now time.Time) bool {
	return s.inode != 0 && now.Add(-granularity).UnixNano() > max(s.modified, s.changed)
}
