package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"xdspub/event"
)

const stagePath = private + "/stage"

// staged is a file that is whole and durable in the stage, at the path at below OUT.
type staged struct {
	File
	at string
}

// files returns the files that p writes, in order.
func (p Plan) files() []File {
	var list []File
	for _, s := range p.Steps {
		list = append(list, s.Write...)
	}
	return list
}

// stageAll writes the files into the stage, flushes them and reads them back.
func (d *Dir) stageAll(ctx context.Context, files []File) ([]staged, error) {
	return d.stageAs(ctx, "", files)
}

// stageAs is stageAll with a prefix for the names of the staged files.
func (d *Dir) stageAs(ctx context.Context, prefix string, files []File) ([]staged, error) {
	ready := make([]staged, len(files))
	for i, f := range files {
		ready[i] = staged{f, d.free(fmt.Sprintf("%s/%s%04d", stagePath, prefix, i+1))}
	}
	return ready, d.write(ctx, stagePath, ready)
}

// free returns a name in one of our own folders that no unremovable file has.
func (d *Dir) free(at string) string {
	for d.stuck[at] {
		at += "+"
	}
	return at
}

// write writes files into one of our own folders and makes them durable there: many of them
// at once.
func (d *Dir) write(ctx context.Context, folder string, files []staged) error {
	in, err := d.root.folder(folder)
	if err != nil {
		return err
	}
	defer in.Close()
	d.bulk = len(files) >= d.disk.Many()
	defer func() { d.bulk = false }()
	for _, f := range files {
		if ctx.Err() != nil {
			return d.stopped("before the first step", ctx.Err())
		}
		if err := d.stage(in, f); err != nil {
			return fmt.Errorf("stage %s: %w", f.Path, err)
		}
	}
	if d.bulk {
		return d.disk.SyncAll(in)
	}
	return d.syncFolder(in)
}

// stage writes f into a folder of ours.
func (d *Dir) stage(in folder, f staged) error {
	name := path.Base(f.at)
	// Nobody else's until the group is right, whatever the umask.
	w, err := d.disk.OpenFile(in, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = d.fill(w, f.File)
	if cerr := w.Close(); err == nil {
		err = cerr // some file systems report a full disk as late as this
	}
	if err != nil {
		return err
	}
	_, ok, err := in.hasFile(name, f.File, d.gid)
	if err == nil && !ok {
		err = fmt.Errorf("read %s: its bytes, mode or group differ from what was just written", in.path(name))
	}
	return err
}

func (d *Dir) fill(w file, f File) error {
	if _, err := w.Write(f.Data); err != nil {
		return err
	}
	info, err := infoOf(w)
	if err != nil {
		return err
	}
	if wrongGroup(info, f.Secret, d.gid) {
		if err := d.disk.Chown(w, d.gid); err != nil {
			return err
		}
	}
	if err := d.disk.Chmod(w, f.mode()); err != nil {
		return err
	}
	if d.bulk {
		return nil // all are flushed together
	}
	return w.Sync()
}

// clear empties one of our own folders, but for the files to keep.
func (d *Dir) clear(name string, keep map[string]bool) error {
	in, err := d.root.folder(name)
	if err != nil {
		return err
	}
	defer in.Close()
	left, err := in.names()
	if err != nil {
		return err
	}
	for _, e := range left {
		if keep[e] {
			continue
		}
		at := path.Join(name, e)
		rerr := d.removeAll(in, e, 0)
		switch {
		case rerr == nil:
			delete(d.stuck, at)
		case d.stuck[at]:
		case d.started:
			// Remove the others nevertheless: they may hold secrets.
			err = errors.Join(err, rerr)
		default:
			d.stuck[at] = true
			d.log.Write(event.LeftoverStays{Path: in.path(e), Error: rerr})
		}
	}
	return err
}

// maxDepth is the largest depth of folders that removeAll removes; xdspub itself creates none.
const maxDepth = 32

// removeAll removes the file or folder at a name with its content.
func (d *Dir) removeAll(in folder, name string, depth int) error {
	err := d.disk.Remove(in, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST):
		return err
	case depth == maxDepth:
		return fmt.Errorf("%w, and nested deeper than %d", err, maxDepth)
	}
	sub, err := in.folder(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	if depth == 0 {
		d.log.Write(event.ForeignFolderRemoved{Path: in.path(name)})
	}
	names, err := sub.names()
	if err != nil {
		return err
	}
	for _, below := range names {
		if err := d.removeAll(sub, below, depth+1); err != nil {
			return err
		}
	}
	return d.disk.Remove(in, name)
}
