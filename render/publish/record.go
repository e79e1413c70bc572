package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// recordFile returns one of our own records as it stands on disk.
func recordFile(path string, record any) (File, error) {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("encode %s: %w", path, err)
	}
	return File{Path: path, Data: append(data, '\n')}, nil
}

// maxRecord bounds a record, in bytes: the base of 100,000 files has some 12 MiB.
const maxRecord = 64 << 20

// readRecord reads one of our own records below root, and returns false if the record does not exist. check
// judges the record; wayOut is the remedy for a damaged record.
func readRecord(root folder, path string, record any, check func() error, wayOut string) (bool, error) {
	return readRecordOf(maxRecord, root, path, record, check, wayOut)
}

// readRecordOf is readRecord for a record of at most that many bytes.
func readRecordOf(most int64, root folder, path string, record any, check func() error, wayOut string) (bool, error) {
	data, _, err := root.read(path, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case isOther(err):
		err = errors.Unwrap(err) // the path is told below
	case err != nil:
		return false, err
	default:
		var head struct {
			Layout int `json:"layout"`
		}
		err = json.Unmarshal(data, &head)
		// First, because this program may be unable to read a newer layout.
		if head.Layout > layout {
			return false, fmt.Errorf("read %s: layout %d is newer than this program's %d: use the newer program, or publish into "+
				"another directory", root.path(path), head.Layout, layout)
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
		return false, fmt.Errorf("read %s: damaged: %w (%s)", root.path(path), err, wayOut)
	}
	return true, nil
}

// maxKept bounds a record of ReadRecord, in bytes.
const maxKept = 1 << 20

// ReadRecord reads the record that PutRecord has written as name into the directory out. ReadRecord takes no lock,
// and returns false if the record or the directory does not exist. The JSON of a record has a field layout, which is
// at least 1. check judges the record after it is read; wayOut is the remedy for a damaged record.
func ReadRecord(out, name string, record any, check func() error, wayOut string) (bool, error) {
	return reading(out, func(root folder) (bool, error) {
		return readRecordOf(maxKept, root, private+"/"+name, record, check, wayOut)
	})
}

// PutRecord writes a record of another package as .xdspub/NAME, with mode 0600, whole and durable. No change of the
// published files may be under way in this process.
func (d *Dir) PutRecord(name string, record any) error {
	if err := d.usable("record"); err != nil {
		return err
	}
	f, err := recordFile(private+"/"+name, record)
	if err != nil {
		return err
	}
	f.private = true
	return d.putFile(f)
}

// put writes one record by itself.
func (d *Dir) put(path string, record any) error {
	f, err := recordFile(path, record)
	if err != nil {
		return err
	}
	return d.putFile(f)
}

// putFile is put for a finished file.
func (d *Dir) putFile(f File) error {
	if err := d.holding(); err != nil {
		return err
	}
	if err := d.emptyStage(); err != nil {
		return err
	}
	in, err := d.root.folder(stagePath)
	if err != nil {
		return err
	}
	defer in.Close()
	ready := staged{f, d.free(stagePath + "/record")}
	if err := d.stage(in, ready); err != nil {
		return errors.Join(fmt.Errorf("stage %s: %w", f.Path, err), d.clear(stagePath, nil))
	}
	return d.record([]staged{ready})
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
		if err := d.sync(path.Dir(r.Path)); err != nil {
			return err
		}
	}
	return nil
}

// records returns our own files around the steps of p: before them the intent and the
// manifest for their time, after them the manifest of p. It leaves out a manifest that
// equals the one on disk.
func (p Plan) records(prev Manifest, in Intent) (before, after []File, err error) {
	last, err := p.Manifest.file()
	if err != nil {
		return nil, nil, err
	}
	if len(p.Steps) > 0 || !p.Manifest.same(prev) {
		after = []File{last}
	}
	if len(p.Steps) == 0 {
		return nil, after, nil
	}
	in.Record = sum(last.Data)
	first, err := recordFile(intentPath, in)
	if err != nil {
		return nil, nil, err
	}
	before = []File{first}
	if m := p.Manifest.during(prev); !m.same(prev) {
		f, err := m.file()
		if err != nil {
			return nil, nil, err
		}
		before = append(before, f)
	}
	return before, after, nil
}
