package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// recordFile is one of our own records as it stands on disk.
func recordFile(path string, record any) (File, error) {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("encode %s: %w", path, err)
	}
	return File{Path: path, Data: append(data, '\n')}, nil
}

// put writes one record by itself.
func (d *Dir) put(path string, record any) error {
	f, err := recordFile(path, record)
	if err != nil {
		return err
	}
	if err := d.clear(stagePath); err != nil {
		return err
	}
	at := d.path(stagePath + "/record")
	if err := d.stage(f, at); err != nil {
		return fmt.Errorf("stage %s: %w", path, err)
	}
	return d.record([]staged{{f, at}})
}

// record puts records in place, one after the other, and makes each durable.
func (d *Dir) record(ready []staged) error {
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
