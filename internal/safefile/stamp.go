package safefile

import (
	"io/fs"
	"time"
)

// Stamp is the file system's metadata of a file before a read. The zero Stamp marks a file that has to be read
// again.
type Stamp struct {
	signature Signature
	settled   bool // later changes give another signature
}

// StampOf returns the Stamp of a file with a Signature. before is a time before the read.
func StampOf(s Signature, before time.Time) Stamp { return Stamp{s, s.Settled(before)} }

// Settled reports whether a later change of the file certainly changes the metadata.
func (s Stamp) Settled() bool { return s.settled }

// Holds reports whether the metadata show that the file is unchanged.
func (s Stamp) Holds(info fs.FileInfo) bool { return s.settled && s.signature == SignatureOf(info) }
