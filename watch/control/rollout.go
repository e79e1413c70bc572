package control

import (
	"fmt"
	"time"

	"xdspub/diag"
)

// Rollout says how far a snapshot is on its way to the machines of a fleet.
type Rollout struct {
	// Snapshot is the id of the snapshot, the candidate. Base is the id of the snapshot of all other machines.
	Snapshot string `json:"snapshot"`
	Base     string `json:"base"`
	// Wave is the last wave that has the candidate, from 1, and Waves the number of waves. Name describes the wave, and
	// Since is when the wave got the candidate. Before the first wave, these fields are zero.
	Wave  int       `json:"wave"`
	Waves int       `json:"waves"`
	Name  string    `json:"name,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// State says what the rollout waits for. Message is the reason, as text.
	State   RolloutState `json:"state"`
	Message string       `json:"message,omitempty"`
	// Until is the end of the bake time; zero unless State is Baking.
	Until time.Time `json:"until,omitzero"`
}

// RolloutState says what a rollout waits for.
type RolloutState string

const (
	// Acknowledging: the quorum of the wave is missing.
	Acknowledging RolloutState = "acknowledging"
	// Baking: the bake time is not over.
	Baking RolloutState = "baking"
	// Checking: a check has no answer yet.
	Checking RolloutState = "checking"
	// RolloutPaused: an operator, a freeze or a trial keeps the next wave from opening.
	RolloutPaused RolloutState = "paused"
	// TakenBack: all machines get the base again. The candidate gets no other rollout until the source tree changes, or
	// until an operator resumes the rollout.
	TakenBack RolloutState = "taken-back"
)

// RolloutStates returns all states.
func RolloutStates() []RolloutState {
	return []RolloutState{Acknowledging, Baking, Checking, RolloutPaused, TakenBack}
}

// String describes the rollout in one sentence.
func (r *Rollout) String() string {
	if r.State == TakenBack {
		return fmt.Sprintf("the rollout of snapshot %s was taken back in wave %d of %d (%s): %s; all machines get snapshot %s",
			r.Snapshot, r.Wave, r.Waves, r.Name, r.Message, r.Base)
	}
	if r.Wave == 0 {
		return fmt.Sprintf("snapshot %s waits for its rollout: %s", r.Snapshot, r.Message)
	}
	text := fmt.Sprintf("snapshot %s is in wave %d of %d (%s)", r.Snapshot, r.Wave, r.Waves, r.Name)
	if r.State == Baking {
		return text + ", which bakes until " + r.Until.UTC().Format(time.RFC3339)
	}
	return text + ": " + r.Message
}

// Shown returns the Rollout in the form that leaves the watch; nil for nil.
func (r *Rollout) Shown() *Rollout {
	if r == nil {
		return nil
	}
	of := *r
	of.Message = diag.Hide(of.Message)
	return &of
}
