package control

import (
	"fmt"
	"time"
)

// Store is what a watch with --store has done in the store of its fleet.
type Store struct {
	Address string `json:"address"`
	// Writes means that the watch is the writer of its target. Writer is user@host of the process that is the writer in
	// place of the watch; empty for none. The watch waits for the end of that process.
	Writes bool   `json:"writes"`
	Writer string `json:"writer,omitempty"`
	// Snapshot is the id of the last snapshot that the watch has published in the store; empty for none.
	Snapshot string `json:"snapshot,omitempty"`
	// Since is the begin of the outage if there is an Error: another Error does not move Since. Without an Error, Since
	// is the end of the last outage or the time at which Writes changed, whichever is later.
	Since time.Time `json:"since,omitzero"`
	// Error is why the published snapshot is not in the store; empty if it is, or if another process is the writer.
	Error string `json:"error,omitempty"`
	// Rollout is the rollout of the fleet that runs, or that was taken back last; nil for none.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Rollout returns the rollout of the fleet; nil for none.
func (w Watch) Rollout() *Rollout {
	if w.Store == nil {
		return nil
	}
	return w.Store.Rollout
}

// Fault returns since when, and why, the published snapshot is not in the store. Fault returns "" if the store has the
// snapshot, if another process is the writer, and for a nil Store.
func (s *Store) Fault() string {
	if s == nil || s.Error == "" {
		return ""
	}
	return fmt.Sprintf("the store can't be written since %s: %s", s.Since.UTC().Format(time.RFC3339), s.Error)
}

// String returns the address of the store, and what the store has of the watch.
func (s *Store) String() string {
	is := "has nothing of this watch yet"
	switch {
	case s.Error != "":
		is = s.Fault()
	case s.Writer != "":
		is = s.Writer + " is the writer; this watch waits until that writer ends"
	case s.Snapshot != "":
		is = "has snapshot " + s.Snapshot
	}
	return s.Address + ": " + is
}
