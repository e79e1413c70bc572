package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"xdspub/diag"
)

const refusedPath = private + "/refused.json"

// Refused is the record of what was not published, or did not stay, in
// .xdspub/refused.json.
type Refused struct {
	Layout int `json:"layout"`
	// Held are the snapshots that Envoy refused. They are not published again
	// until another one was, or until they are released.
	Held []Refusal `json:"held"`
	// Last is the last refusal, by Envoy or before anything moved. It is gone when
	// a snapshot is accepted.
	Last *Refusal `json:"last,omitempty"`
}

// Refusal says why a snapshot is not out.
type Refusal struct {
	// Snapshot is its id; empty where the source tree was refused before it had
	// one.
	Snapshot string    `json:"snapshot,omitempty"`
	Time     time.Time `json:"time"`
	// Step is the one that Envoy refused; empty where nothing moved.
	Step     string    `json:"step,omitempty"`
	Findings diag.List `json:"findings"`
}

// ReadRefused reads the record of the directory out, as ReadManifest does.
func ReadRefused(out string) (Refused, error) {
	name := filepath.Join(out, refusedPath)
	data, err := readRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Refused{}, nil
	}
	if err != nil {
		return Refused{}, err
	}
	var r Refused
	if err := json.Unmarshal(data, &r); err != nil {
		return Refused{}, fmt.Errorf("read %s: damaged: %w (remove the file: what Envoy refused is then tried once more)", name, err)
	}
	return r, nil
}

// Holds is the refusal of a snapshot that is held, or nil.
func (r Refused) Holds(snapshot string) *Refusal {
	for i := range r.Held {
		if r.Held[i].Snapshot == snapshot {
			return &r.Held[i]
		}
	}
	return nil
}

// Refuse notes a refusal before anything moved.
func (d *Dir) Refuse(r Refusal) error {
	record, err := ReadRefused(d.out)
	if err != nil {
		return err
	}
	if record.Last != nil && record.Last.Snapshot == r.Snapshot && record.Last.Step == r.Step && sameFindings(record.Last.Findings, r.Findings) {
		return nil // the time that counts is the first
	}
	record.Last = &r
	return d.putRefused(record)
}

// hold notes a refusal by Envoy.
func (d *Dir) hold(r Refusal) error {
	record, err := ReadRefused(d.out)
	if err != nil {
		d.log.Warn("what was held is forgotten", "error", err)
	}
	record.Held = slices.DeleteFunc(record.Held, func(h Refusal) bool { return h.Snapshot == r.Snapshot })
	record.Held = append(record.Held, r)
	record.Last = &r
	return d.putRefused(record)
}

// Release lets what is held be tried again, and forgets the last refusal.
func (d *Dir) Release() error {
	record, err := ReadRefused(d.out)
	if err == nil && len(record.Held) == 0 && record.Last == nil {
		return nil
	}
	return d.putRefused(Refused{})
}

func (d *Dir) putRefused(r Refused) error {
	r.Layout = layout
	if r.Held == nil {
		r.Held = []Refusal{} // never null in JSON
	}
	return d.put(refusedPath, r)
}

// sameFindings compares as they are on disk.
func sameFindings(a, b diag.List) bool {
	x, errx := json.Marshal(a)
	y, erry := json.Marshal(b)
	return errx == nil && erry == nil && bytes.Equal(x, y)
}
