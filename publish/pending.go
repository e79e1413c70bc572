package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
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
	gid := anyGroup
	if fi, err := statFolder(out); err != nil {
		return Plan{}, err
	} else if fi != nil || o.Group != "" {
		if gid, err = lookupGroup(o.Group, out); err != nil {
			return Plan{}, err
		}
	}
	return pending(out, p, gid, nil)
}

// pending is Pending with the change that was interrupted: where somebody confirms,
// its files move again though they are out, since nobody saw whether Envoy took
// them.
func pending(out string, p Plan, gid int, interrupted *Intent) (Plan, error) {
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	if _, err := statFolder(out); err != nil {
		return Plan{}, err
	}
	// Backwards: where one writing of a file is out, those on the way to it are not
	// needed.
	var steps []Step
	done, again := make(map[string]bool), make(map[string]bool)
	if p.Confirm != nil {
		again = interrupted.paths()
		for _, name := range p.Again {
			again[name] = true
		}
	}
	for _, s := range slices.Backward(p.Steps) {
		left := Step{Name: s.Name}
		for _, f := range s.Write {
			ok, err := settled(out, f, gid)
			if err != nil {
				return Plan{}, fmt.Errorf("publish %s: %w", f.Path, err)
			}
			if !done[f.Path] && (!ok || again[f.Path]) {
				left.Write = append(left.Write, f)
			}
			done[f.Path] = done[f.Path] || ok
		}
		for _, name := range s.Remove {
			there, err := removable(filepath.Join(out, name))
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

// settled tells whether f is out as it should be. It fails when f can't go out.
func settled(out string, f File, gid int) (bool, error) {
	for _, folder := range folders(f.Path) {
		fi, err := statFolder(filepath.Join(out, folder))
		if err != nil || fi == nil {
			return false, err
		}
		// A folder that Envoy could not enter, or all could, is mended along with
		// its file: Envoy needs the rename to look again.
		if folder == path.Dir(f.Path) && (fi.Mode().Perm() != f.folderMode() || wrongGroup(fi, f.Secret, gid)) {
			_, err := holds(filepath.Join(out, f.Path), f, gid)
			return false, err
		}
	}
	return holds(filepath.Join(out, f.Path), f, gid)
}

// holds tells whether name is a regular file with the bytes and the mode of f.
func holds(name string, f File, gid int) (bool, error) {
	fi, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case fi.IsDir():
		return false, &fs.PathError{Op: "rename", Path: name, Err: syscall.EISDIR}
	case fi.Mode() != f.mode() || fi.Size() != int64(len(f.Data)) || wrongGroup(fi, f.Secret, gid):
		return false, nil // a link or a pipe has another mode too: it is never opened
	}
	data, err := os.ReadFile(name)
	return err == nil && bytes.Equal(data, f.Data), err
}

// removable tells whether there is a file to unlink at name.
func removable(name string) (bool, error) {
	fi, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case fi.IsDir():
		return false, &fs.PathError{Op: "remove", Path: name, Err: syscall.EISDIR}
	}
	return true, nil
}

// statFolder is os.Stat for a folder: nil when there is nothing, an error when
// something else stands in its place.
func statFolder(name string) (fs.FileInfo, error) {
	fi, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(name); err == nil {
			return nil, &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("a symbolic link to nothing is in the way")}
		}
		return nil, nil
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	}
	return fi, nil
}

func wrongGroup(fi fs.FileInfo, secret bool, gid int) bool {
	return secret && gid != anyGroup && int(stat(fi).Gid) != gid
}

// stat is the part of fi that io/fs has no words for: owner and device.
func stat(fi fs.FileInfo) *syscall.Stat_t { return fi.Sys().(*syscall.Stat_t) }
