package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"time"
)

// step renames the staged files into place, unlinks the files that s removes, and makes both durable. It
// returns the completed part, even with an error.
func (d *Dir) step(s Step, ready []staged) (StepResult, error) {
	done := StepResult{Name: s.Name}
	if err := d.holding(); err != nil {
		return done, err
	}
	d.bulk = len(ready)+len(s.Remove) >= d.disk.Many()
	defer func() { d.bulk = false }()
	for _, f := range ready {
		gid := anyGroup
		if f.Secret {
			gid = d.gid
		}
		if err := d.ensureFolder(path.Dir(f.Path), f.folderMode(), gid); err != nil {
			return done, err
		}
	}
	for _, f := range ready {
		if err := d.rename(f); err != nil {
			return done, err
		}
		d.reader.published(f.File)
		done.Written = append(done.Written, f.Path)
	}
	if err := d.syncFolders(done.Written); err != nil {
		return done, err
	}
	for _, name := range s.Remove {
		if err := d.unlink(name); err != nil {
			return done, err
		}
		done.Removed = append(done.Removed, name)
	}
	return done, d.syncFolders(done.Removed)
}

// rename moves a staged file into place.
func (d *Dir) rename(f staged) error {
	from, staged, err := d.root.split(f.at)
	if err != nil {
		return err
	}
	defer from.Close()
	to, name, err := d.root.split(f.Path)
	if err != nil {
		return err
	}
	defer to.Close()
	err = d.disk.Rename(from, staged, to, name)
	d.reader.moved(f.Path, err == nil)
	if errors.Is(err, syscall.EXDEV) {
		return apart(err)
	}
	return err
}

// unlink removes the file at a path below OUT, if it is there.
func (d *Dir) unlink(file string) error {
	in, name, err := d.root.split(file)
	if err == nil {
		defer in.Close()
		err = d.disk.Remove(in, name)
		d.reader.moved(file, false)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncFolders flushes the folders of the files, each once, or all of them together.
func (d *Dir) syncFolders(files []string) error {
	if d.bulk && len(files) > 0 {
		return d.disk.SyncAll(d.root)
	}
	flushed := map[string]bool{}
	for _, name := range files {
		folder := path.Dir(name)
		if flushed[folder] {
			continue
		}
		if err := d.sync(folder); err != nil {
			return err
		}
		flushed[folder] = true
	}
	return nil
}

// reachable fails when a folder that p writes to is on another file system than the
// stage, or is mounted, or a file is, before anything has moved: there is no rename
// between two mounts.
func (d *Dir) reachable(p Plan) error {
	var files []string
	for _, f := range p.files() {
		files = append(files, f.Path)
	}
	list, err := d.root.apart(files, 1)
	if err != nil || len(list) == 0 {
		return err
	}
	return apart(&fs.PathError{Op: "rename", Path: d.path(list[0]), Err: syscall.EXDEV})
}

// Apart returns those of the published files of the directory out, and of the folders above them, that no rename from
// the stage reaches: they are on another file system, or mounted. Apart returns at most most of them, the outermost
// first.
func Apart(out string, files []string, most int) ([]string, error) {
	list, err := reading(out, func(root folder) ([]string, error) { return root.apart(files, most) })
	if errors.Is(err, fs.ErrNotExist) { // no stage: nothing was published yet
		err = nil
	}
	return list, err
}

// apart is the function Apart for the directory f.
func (f folder) apart(files []string, most int) (list []string, err error) {
	stage, err := f.placeOf(stagePath)
	if err != nil {
		return nil, err
	}
	for _, name := range places(files) {
		at, err := f.placeOf(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case at != stage:
			if list = append(list, name); len(list) == most {
				return list, nil
			}
		}
	}
	return list, nil
}

// places returns files and the folders above them, each once, the outermost first.
func places(files []string) (list []string) {
	seen := make(map[string]bool)
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	for _, file := range files {
		for i, c := range file {
			if c == '/' {
				add(file[:i])
			}
		}
		add(file)
	}
	return list
}

// place is where a rename leads to and comes from.
type place struct{ device, mount uint64 }

// placeOf is that of a file or folder below f.
func (f folder) placeOf(file string) (place, error) {
	in, name, err := f.split(file)
	if err != nil {
		return place{}, err
	}
	defer in.Close()
	info, err := in.lstat(name)
	if err != nil {
		return place{}, err
	}
	mount, err := in.mount(name)
	return place{info.Device(), mount}, err
}

func apart(err error) error {
	return fmt.Errorf("%w (the whole output directory, with %s, must be on one file system, and nothing mounted inside it)", err, private)
}

// wait lets the gap after a step pass.
func (d *Dir) wait(ctx context.Context, gap time.Duration, after string) error {
	if ctx.Err() == nil && gap > 0 {
		t := time.NewTimer(gap)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return d.stopped("after step "+after, ctx.Err())
	}
	return nil
}

// stoppedError means that a change ended early.
type stoppedError struct {
	out, where string
	err        error
}

func (e *stoppedError) Error() string {
	text := fmt.Sprintf("publish %s: stopped %s, the next run continues from there", e.out, e.where)
	if errors.Is(e.err, context.Canceled) {
		return text // by a signal: whoever sent it knows
	}
	return text + ": " + e.err.Error()
}

func (e *stoppedError) Unwrap() error { return e.err }

func (d *Dir) stopped(where string, err error) error { return &stoppedError{d.out, where, err} }
