package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const stagePath = private + "/stage"

// staged is a file that is whole and durable in the stage, at the path at.
type staged struct {
	File
	at string
}

// stageAll writes the files into the stage, flushes them and reads them back.
func (d *Dir) stageAll(ctx context.Context, files []File) ([]staged, error) {
	ready := make([]staged, len(files))
	for i, f := range files {
		ready[i] = staged{f, d.path(fmt.Sprintf("%s/%04d", stagePath, i+1))}
	}
	return ready, d.write(ctx, stagePath, ready)
}

// write writes files into one of our own folders and makes them durable there.
func (d *Dir) write(ctx context.Context, folder string, files []staged) error {
	for _, f := range files {
		if ctx.Err() != nil {
			return d.stopped(ctx, "before the first step")
		}
		if err := d.stage(f.File, f.at); err != nil {
			return fmt.Errorf("stage %s: %w", f.Path, err)
		}
	}
	return d.syncFolder(d.path(folder))
}

func (d *Dir) stage(f File, at string) error {
	// Nobody else's until the group is right, whatever the umask.
	w, err := d.disk.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = d.fill(w, f, at)
	if cerr := w.Close(); err == nil {
		err = cerr // some file systems report a full disk as late as this
	}
	if err != nil {
		return err
	}
	ok, err := holds(at, f, d.gid)
	if err == nil && !ok {
		err = fmt.Errorf("read %s: not what was written, in bytes, mode or group", at)
	}
	return err
}

func (d *Dir) fill(w file, f File, at string) error {
	if _, err := w.Write(f.Data); err != nil {
		return err
	}
	fi, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if wrongGroup(fi, f.Secret, d.gid) {
		if err := d.disk.Chown(at, -1, d.gid); err != nil {
			return err
		}
	}
	if err := d.disk.Chmod(at, f.mode()); err != nil {
		return err
	}
	return w.Sync()
}

// clear empties one of our own folders, but for the files to keep.
func (d *Dir) clear(folder string, keep map[string]bool) error {
	left, err := os.ReadDir(d.path(folder))
	if err != nil {
		return err
	}
	for _, e := range left {
		if keep[e.Name()] {
			continue
		}
		// The others go even when one stays: they may hold secrets.
		rerr := d.disk.Remove(d.path(folder + "/" + e.Name()))
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
