package store

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"xdspub/diag"
	"xdspub/watch/control"
)

// layout is the layout of the keys and values of a store.
const layout = 1

// Head says which resources of a target are out.
type Head struct {
	Layout int `json:"layout"`
	// Serial numbers the heads of a target. A later head has a larger Serial, also after the restore of a backup.
	Serial int64 `json:"serial"`
	// Time is when the writer moved the head, by the clock of the writer. Writer is the writer, as user@host.
	Time   time.Time `json:"time"`
	Writer string    `json:"writer"`
	// Snapshot is the id of the published snapshot, with encryption a name of the id, and Resources the number of its
	// resources.
	Snapshot  string `json:"snapshot"`
	Resources int    `json:"resources"`
	// Tree is the hash of the resources (history.Tree.ID), with encryption a name of the hash.
	Tree string `json:"tree"`
	// Whole is the serial of the last step with all resources.
	Whole int64 `json:"whole"`
	// Step is the last step.
	Step Step `json:"step"`
	// Change has the bytes of the change of Step in base64, so that followers need no second request. Change is empty
	// for more than maxChange bytes. The objects have the bytes, too.
	Change string `json:"change,omitempty"`
	// Rollout is the running rollout, or a rollout that was taken back; nil for none.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Step is a change of the resources of a target.
type Step struct {
	// Serial is the serial of the first head with the change, and part of the step's key.
	Serial int64 `json:"serial"`
	// Base and Tree are the hashes of the resources before and after the change, with encryption names of the hashes. A
	// step with all resources has no Base.
	Base string `json:"base,omitempty"`
	Tree string `json:"tree"`
	// Pack is the hash of the bytes of the change, and Bytes their number.
	Pack  string `json:"pack"`
	Bytes int64  `json:"bytes"`
	// Cipher is a name of the age recipients of the change; empty if the change is not encrypted.
	Cipher string `json:"cipher,omitempty"`
}

// Term is the value of a writer's key.
type Term struct {
	Writer string    `json:"writer"` // user@host
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
	// Rollout is the running rollout as the writer sees it; nil for none.
	Rollout *control.Rollout `json:"rollout,omitempty"`
}

// State is the outcome of a head on a machine.
type State string

const (
	Published State = "published" // the machine has published the head
	Refused   State = "refused"   // the machine can't read the head, or its rules or Envoys refuse the head
	Failed    State = "failed"    // the value of the machine's key is invalid
)

// Ack is the value of a machine's key: the acknowledgement of a head.
type Ack struct {
	Layout int `json:"layout"`
	// Serial is the serial of the last head that the machine has published or refused.
	Serial int64 `json:"serial"`
	// Snapshot is the id of the snapshot that is out on the machine, with encryption the name in the head; empty for
	// none.
	Snapshot string `json:"snapshot,omitempty"`
	State    State  `json:"state"`
	// Message is the first finding of a refused head, or why the machine can't read the head.
	Message string    `json:"message,omitempty"`
	Time    time.Time `json:"time"` // by the clock of the machine
	Version string    `json:"version,omitempty"`
	// Waves means that the machine takes part in rollouts, with Labels (waves.Labels). A machine without Waves gets the
	// base until the end of a rollout.
	Waves  bool   `json:"waves,omitempty"`
	Labels string `json:"labels,omitempty"`
}

const (
	maxHead    = 16 << 10 // bounds a Head, in bytes
	maxAck     = 4 << 10
	maxTerm    = 8 << 10
	maxMessage = 1 << 10
	maxWords   = 200
	maxChange  = 2 << 10
	// maxPack bounds the bytes of a change.
	maxPack = 256 << 20
)

// snapshotID matches the id of a snapshot.
var snapshotID = regexp.MustCompile(`^[0-9A-Za-z]{0,80}$`)

// ForeignError means that this version of xdspub has not written the value of a key.
type ForeignError struct {
	Key    string
	Reason string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the key %s holds something else: %s; choose another prefix, or remove the key", e.Key, e.Reason)
}

// parseHead reads a head.
func parseHead(key string, value []byte) (h Head, err error) {
	if err := parse(key, value, maxHead, &h); err != nil {
		return h, err
	}
	switch {
	case h.Layout != layout:
		return h, &ForeignError{key, fmt.Sprintf("layout %d, and this program knows layout %d: use the version of xdspub that wrote the key", h.Layout, layout)}
	case !h.valid() || h.Rollout != nil && !h.Rollout.valid():
		return h, &ForeignError{key, "a head with invalid fields"}
	}
	h.Writer = diag.ClipLine(h.Writer, maxWords)
	return h, nil
}

// valid reports whether the fields of a head are valid, without its Rollout.
func (h *Head) valid() bool {
	return h.Serial > 0 && h.Whole > 0 && h.Whole <= h.Serial && snapshotID.MatchString(h.Snapshot) && h.Step.check() == nil && h.Step.Tree == h.Tree
}

// parse reads a value as JSON.
func parse(key string, value []byte, limit int, into any) error {
	if len(value) > limit {
		return &ForeignError{key, fmt.Sprintf("%d bytes, and %d are allowed", len(value), limit)}
	}
	if err := json.Unmarshal(value, into); err != nil {
		return &ForeignError{key, fmt.Sprintf("%q", diag.ClipLine(string(value), 60))}
	}
	return nil
}

// check returns an error if a field of a step is invalid.
func (s Step) check() error {
	for _, hash := range []string{s.Base, s.Tree, s.Cipher} {
		if b, err := hex.DecodeString(hash); err != nil || len(b) != 0 && len(b) != 32 {
			return fmt.Errorf("%.12q is no hash", hash)
		}
	}
	if b, err := hex.DecodeString(s.Pack); err != nil || len(b) != 32 || s.Bytes <= 0 || s.Bytes > maxPack {
		return fmt.Errorf("the step names no change of 1 to %d bytes", int64(maxPack))
	}
	return nil
}
