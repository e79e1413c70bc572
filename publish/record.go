package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// recordFile is one of our own records as it stands on disk.
func recordFile(path string, record any) (File, error) {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("encode %s: %w", path, err)
	}
	return File{Path: path, Data: append(data, '\n')}, nil
}

// readRecord reads one of our own records in the directory out; false is that there
// is none. check judges what was read, and wayOut is the advice where it is damaged.
func readRecord(out, path string, record any, check func() error, wayOut string) (bool, error) {
	name := filepath.Join(out, path)
	data, err := readRegular(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, errNotRegular):
		err = errNotRegular
	case err != nil:
		return false, err
	default:
		var head struct {
			Layout int `json:"layout"`
		}
		err = json.Unmarshal(data, &head)
		// First, since a newer layout may well be one that this program can't read.
		if head.Layout > layout {
			return false, fmt.Errorf("read %s: layout %d is newer than this program's %d: use the newer program, or publish into another directory", name, head.Layout, layout)
		}
		if err == nil && head.Layout < 1 {
			err = errors.New("no layout")
		}
		if err == nil {
			err = json.Unmarshal(data, record)
		}
		if err == nil {
			err = check()
		}
	}
	if err != nil {
		return false, fmt.Errorf("read %s: damaged: %w (%s)", name, err, wayOut)
	}
	return true, nil
}

// put writes one record by itself.
func (d *Dir) put(path string, record any) error {
	f, err := recordFile(path, record)
	if err != nil {
		return err
	}
	if err := d.holding(); err != nil {
		return err
	}
	if err := d.emptyStage(); err != nil {
		return err
	}
	at := d.path(stagePath + "/record")
	if err := d.stage(f, at); err != nil {
		return errors.Join(fmt.Errorf("stage %s: %w", path, err), d.clear(stagePath, nil))
	}
	return d.record([]staged{{f, at}})
}

// record puts records in place, one after the other, and makes each durable.
func (d *Dir) record(ready []staged) error {
	if err := d.holding(); err != nil {
		return err
	}
	for _, r := range ready {
		if err := d.rename(r); err != nil {
			return err
		}
		if err := d.syncFolder(d.path(private)); err != nil {
			return err
		}
	}
	return nil
}

var errNotRegular = errors.New("not a regular file")

// readRegular is os.ReadFile for what is a file: a pipe has no end.
func readRegular(name string) ([]byte, error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", name, errNotRegular)
	}
	return os.ReadFile(name)
}
