package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path"
)

// isOut reports whether f is out as it should be. It fails when f can't go out.
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

// settledFile is a file that is out as it was planned.
type settledFile struct {
	File
	folder, info Info
	// settled tells that every later change of the file gives it another Info. Without it
	// the Info is not known, or not enough.
	settled bool
	sum     string // "" where it is not known
	found   int    // in which look
}

// holds reports whether the file of a settled one is still out, by what its folder and itself
// are now.
func (was settledFile) holds(folder, info Info) bool {
	return folder.SameFile(was.folder.Signature) && folder.Mode == was.folder.Mode && folder.group == was.folder.group && info == was.info
}

// trusted returns a file that is taken to be out as it was planned.
func (r *Reader) trusted(file string) (was File, ok bool) {
	is, known := r.settled[file]
	return is.File, known && r.trusts && is.found >= r.since
}

// foundOut reports whether f was found to be out before, and is still. known reports whether
// that is certain; otherwise false means that it has to be looked at.
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
