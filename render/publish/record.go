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
	data, _, err := root.read(path, maxRecord)
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
	in, err := d.root.folder(stagePath)
	if err != nil {
		return err
	}
	defer in.Close()
	ready := staged{f, d.free(stagePath + "/record")}
	if err := d.stage(in, ready); err != nil {
		return errors.Join(fmt.Errorf("stage %s: %w", path, err), d.clear(stagePath, nil))
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
