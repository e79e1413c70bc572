package control

import (
	"fmt"
	"time"
)

// Store says how a watch with --store stands to the store of its fleet.
type Store struct {
	Address string `json:"address"`
	// Writes means that the watch is the writer of its target. Writer is another writer, as user@host, whose end the
	// watch awaits; empty for none.
	Writes bool   `json:"writes"`
	Writer string `json:"writer,omitempty"`
	// Snapshot is the id of the last snapshot that the watch has published in the store; empty for none.
	Snapshot string `json:"snapshot,omitempty"`
	// Since is the time at which Writes or Error changed last.
	Since time.Time `json:"since,omitzero"`
	// Error is why the published snapshot is not in the store; empty if it is, or if another process is the writer.
	Error string `json:"error,omitempty"`
}

// Fault returns since when, and why, the published snapshot is not in the store. Fault returns "" if it is, if another
// process is the writer, and for a nil Store.
func (s *Store) Fault() string {
	if s == nil || s.Error == "" {
		return ""
	}
	return fmt.Sprintf("the store can't be written since %s: %s", s.Since.UTC().Format(time.RFC3339), s.Error)
}

// String returns the address, and how the watch stands to the store.
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
