package publish

import (
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/event"
)

const refusedPath = private + "/refused.json"

// Refused is the record of the snapshots that Envoy refused, in .xdspub/refused.json.
type Refused struct {
	Layout int `json:"layout"`
	// Held are the snapshots that Envoy refused. They are not published again until another snapshot is
	// published, or until they are released.
	Held []Refusal `json:"held"`
	// Last is the last refusal, even after a later success.
	Last *Refusal `json:"last,omitempty"`
}

// Refusal is the refusal of a snapshot by Envoy.
type Refusal struct {
	Snapshot string `json:"snapshot"` // its id
	// Delivery is the hash of the resources in published form, because a snapshot can be delivered in several
	// forms. An empty Delivery holds the snapshot in every form; in older records, Snapshot is that hash.
	Delivery string    `json:"delivery,omitempty"`
	Time     time.Time `json:"time"`
	Step     string    `json:"step"` // the refused one
	Findings diag.List `json:"findings"`
}

// ReadRefused reads the record of the directory out, as ReadManifest does.
func ReadRefused(out string) (Refused, error) { return reading(out, readRefused) }

func readRefused(root folder) (Refused, error) {
	var r Refused
	there, err := readRecord(root, refusedPath, &r, func() error { return nil }, "remove the file: the snapshots that it holds are then published once more")
	if err != nil || !there {
		return Refused{}, err
	}
	return r, nil
}

// Holds returns the refusal for which a snapshot, as it would be delivered now, is held, or
// nil.
func (r Refused) Holds(snapshot, delivery string) *Refusal {
	for i := range r.Held {
		if h := r.Held[i]; h.Delivery == delivery || h.Delivery == "" && (h.Snapshot == snapshot || h.Snapshot == delivery) {
			return &r.Held[i]
		}
	}
	return nil
}

// refused records a refusal by Envoy, and holds its snapshot or not.
func (d *Dir) refused(r Refusal, hold bool) error {
	record, err := readRefused(d.root)
	if err != nil {
		d.log.Write(event.HoldsLost{Error: err})
	}
	if hold {
		record.Held = slices.DeleteFunc(record.Held, func(h Refusal) bool { return h.Snapshot == r.Snapshot && h.Delivery == r.Delivery })
		record.Held = append(record.Held, r)
	}
	record.Last = &r
	return d.putRefused(record)
}

// Release ends the hold of all snapshots.
func (d *Dir) Release() error {
	if err := d.usable("release"); err != nil {
		return err
	}
	record, err := readRefused(d.root)
	if err == nil && len(record.Held) == 0 {
		return nil
	}
	record.Held = nil // of a damaged record nothing stays
	return d.putRefused(record)
}

func (d *Dir) putRefused(r Refused) error {
	r.Layout = 1 // which older programs know, too
	if r.Held == nil {
		r.Held = []Refusal{} // never null in JSON
	}
	return d.put(refusedPath, r)
}
