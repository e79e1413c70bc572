package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"
	"time"
)

// anyGroup stands where the group of a secret is not looked at.
const anyGroup = -1

// Pending reduces p to what differs from the directory out: files whose bytes,
// kind or mode, or the mode of their folder, are not as planned, and removals
// of files that exist. Steps that have nothing left are dropped. It changes
// nothing and needs no lock; a directory that does not exist is an empty one.
// An error is a plan that can't be published there, such as a folder where a
// file has to go.
//
// Publish starts with the same comparison.
func Pending(out string, p Plan, o Options) (Plan, error) {
	return reading(out, func(root folder) (Plan, error) {
		gid := anyGroup
		if root.File != nil || o.Group != "" {
			var err error
			if gid, err = lookupGroup(o.Group, root); err != nil {
				return Plan{}, err
			}
		}
		return pending(root, p, gid, nil, NewReader(out))
	})
}

// pending is Pending with the change that was interrupted: where somebody confirms,
// its files move again though they are out, since nobody saw whether Envoy took
// them. What known knows to be out is not read again.
func pending(root folder, p Plan, gid int, interrupted *Intent, known *Reader) (Plan, error) {
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	// Backwards: where one writing of a file is out, those on the way to it are not
	// needed.
	var steps []Step
	asked := make(links)
	done, again := make(map[string]bool), make(map[string]bool)
	if p.Confirm != nil {
		again = interrupted.paths()
		for _, name := range p.Republish {
			again[name] = true
		}
	}
	for _, s := range slices.Backward(p.Steps) {
		left := Step{Name: s.Name}
		for _, f := range s.Write {
			ok, err := known.isOut(root, f, gid, asked)
			if err != nil {
				return Plan{}, fmt.Errorf("publish %s: %w", f.Path, err)
			}
			if !done[f.Path] && (!ok || again[f.Path]) {
				left.Write = append(left.Write, f)
			}
			done[f.Path] = done[f.Path] || ok
		}
		for _, name := range s.Remove {
			there, err := removable(root, name)
			if err != nil {
				return Plan{}, fmt.Errorf("remove %s: %w", name, err)
			}
			if there {
				left.Remove = append(left.Remove, name)
			}
		}
		if len(left.Write)+len(left.Remove) > 0 {
			steps = append(steps, left)
		}
	}
	slices.Reverse(steps)
	p.Steps = steps
	return p, nil
}

// isOut reports whether f is out as it should be. It fails when f can't go out.
func (r *Reader) isOut(root folder, f File, gid int, asked links) (bool, error) {
	if out, known := r.foundOut(root, f, asked); known {
		return out, nil
	}
	return r.look(root, f, gid)
}

// look is isOut by what is on disk. It keeps what it finds.
func (r *Reader) look(root folder, f File, gid int) (bool, error) {
	in, err := root.folder(path.Dir(f.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	defer in.Close()
	folder, err := in.info()
	if err != nil {
		return false, err
	}
	// A folder that Envoy could not enter, or all could, is mended along with its
	// file: Envoy needs the rename to look again.
	mended := folder.Mode.Perm() != f.folderMode() || wrongGroup(folder, f.Secret, gid)
	now := time.Now()
	info, ok, err := holds(in, path.Base(f.Path), f, gid)
	if ok = ok && !mended; ok && err == nil {
		r.settled[f.Path] = settledFile{f, folder, info, info.Settled(now), sum(f.Data), r.looks}
	}
	return ok, err
}

// holds reports whether name is a regular file with the bytes and the mode of f, and what
// else is known of it.
func holds(in folder, name string, f File, gid int) (Info, bool, error) {
	info, err := in.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, false, nil
	case err != nil:
		return info, false, err
	case info.Mode.IsDir():
		return info, false, in.failed("rename", name, syscall.EISDIR)
	case info.Mode != f.mode() || info.Size() != int64(len(f.Data)) || wrongGroup(info, f.Secret, gid):
		return info, false, nil // a link or a pipe has another mode too: it is never opened
	}
	data, info, err := in.readHere(name, info.Size())
	return info, err == nil && bytes.Equal(data, f.Data), err
}

// removable reports whether there is a file to unlink.
func removable(root folder, file string) (bool, error) {
	in, name, err := root.split(file)
	if err == nil {
		defer in.Close()
		var info Info
		if info, err = in.lstat(name); err == nil && info.Mode.IsDir() {
			err = in.failed("remove", name, syscall.EISDIR)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func wrongGroup(info Info, secret bool, gid int) bool {
	return secret && gid != anyGroup && info.group != gid
}
