package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path"
)

// isOut reports whether f is published as planned. It returns an error if f can't be published.
func (r *Reader) isOut(root folder, f File, gid int, asked links) (bool, error) {
	if out, known := r.foundOut(root, f, asked); known {
		return out, nil
	}
	is, out, err := root.look(f, gid)
	if out {
		r.keep(is)
	}
	return out, err
}

// keep notes a file that was looked at and is out.
func (r *Reader) keep(is settledFile) {
	is.sum, is.found = sum(is.Data), r.looks
	r.settled[is.Path] = is
}

// settledFile is a file that is published as planned.
type settledFile struct {
	File
	folder, info Info
	// settled tells that every later change of the file gives it another Info. Without it
	// the Info is not known, or not enough.
	settled bool
	sum     string // "" if unknown
	found   int    // in which look
}

// holds reports whether the file is still published, by the present Info of its folder and of itself.
func (was settledFile) holds(folder, info Info) bool {
	return folder.SameFile(was.folder.Signature) && folder.Mode == was.folder.Mode && folder.group == was.folder.group && info == was.info
}

// trusted returns a file that the Reader takes to be published as planned.
func (r *Reader) trusted(file string) (was File, ok bool) {
	is, known := r.settled[file]
	return is.File, known && r.trusts && is.found >= r.since
}

// foundOut reports whether f was found published before, and still is. If known is false, the disk has to be
// read.
func (r *Reader) foundOut(root folder, f File, asked links) (out, known bool) {
	was, known := r.settled[f.Path]
	same := known && was.Secret == f.Secret && bytes.Equal(was.Data, f.Data)
	if _, trusted := r.trusted(f.Path); trusted {
		return same, true
	}
	if !same {
		return false, false
	}
	if !was.settled || asked.above(root, path.Dir(f.Path)) {
		return false, false
	}
	folder, err := root.lstat(path.Dir(f.Path))
	if err != nil {
		return false, false
	}
	info, err := root.lstat(f.Path)
	if out = err == nil && was.holds(folder, info); out {
		was.found = r.looks
		r.settled[f.Path] = was
	}
	return out, out
}

// links tells where links are, and asks of each folder once.
type links map[string]bool

// above reports whether a folder above the folder at a path below root is a link, or is not there.
func (l links) above(root folder, at string) bool {
	parent := path.Dir(at)
	if parent == "." {
		return false
	}
	is, known := l[parent]
	if !known {
		if is = l.above(root, parent); !is {
			info, err := root.lstat(parent)
			is = err != nil || !info.Mode.IsDir()
		}
		l[parent] = is
	}
	return is
}

// sum returns the hash of the bytes of f.
func (r *Reader) sum(f File) string {
	if was := r.settled[f.Path]; was.sum != "" && bytes.Equal(was.Data, f.Data) {
		return was.sum
	}
	return sum(f.Data)
}

// sum is short: it detects an edit by hand, and no forgery.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:16])
}
