package safefile

import (
	"io/fs"
	"syscall"
	"time"
)

// Signature is the metadata that identifies a file and its content. If the Signature of a file equals an earlier
// Signature that was Settled, the content is the same as at that time.
type Signature struct {
	device, inode uint64
	size          int64
	modified      int64 // in ns; any writer of the file can set it
	changed       int64 // in ns; only the kernel sets it
}

// NewSignature returns the Signature of a file. modified and changed are in ns since 1970.
func NewSignature(device, inode uint64, size, modified, changed int64) Signature {
	return Signature{device, inode, size, modified, changed}
}

// Changed returns the time of the last change of the file, its mode or its owner.
func (s Signature) Changed() time.Time { return time.Unix(0, s.changed) }

// Size returns the size of the file in bytes.
func (s Signature) Size() int64 { return s.size }

// SameFile reports whether two Signatures are of the same file. The content may differ.
func (s Signature) SameFile(o Signature) bool { return s.device == o.device && s.inode == o.inode }

// Inode returns the number of the inode of the file.
func (s Signature) Inode() uint64 { return s.inode }

// Device returns the number of the device of the file.
func (s Signature) Device() uint64 { return s.device }

// SignatureOf returns the Signature of a file. It returns the zero Signature, which is never Settled, if the system
// does not tell device and inode.
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

// granularity is larger than the steps of the clocks of file systems, which are up to two seconds (FAT). The rest
// allows for a file server whose clock is behind.
const granularity = 10 * time.Second

// Settled reports whether each later change of the file certainly changes the Signature. now is a time before the
// file was read. A file that changed shortly before now may change again in the same step of the file system's
// clock, without a change of the Signature.
func (s Signature) Settled(now time.Time) bool {
	return s.inode != 0 && now.Add(-granularity).UnixNano() > max(s.modified, s.changed)
}
