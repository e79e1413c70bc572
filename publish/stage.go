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
		if ctx.Err() != nil {
			return nil, d.stopped(ctx, "before the first step")
		}
		at := d.path(fmt.Sprintf("%s/%04d", stagePath, i+1))
		if err := d.stage(f, at); err != nil {
			return nil, fmt.Errorf("stage %s: %w", f.Path, err)
		}
		ready[i] = staged{f, at}
	}
	return ready, d.syncFolder(d.path(stagePath))
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

// clearStage empties the stage.
func (d *Dir) clearStage() error {
	left, err := os.ReadDir(d.path(stagePath))
	if err != nil {
		return err
	}
	for _, e := range left {
		// The others go even when one stays: they may hold secrets.
		rerr := d.disk.Remove(d.path(stagePath + "/" + e.Name()))
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
