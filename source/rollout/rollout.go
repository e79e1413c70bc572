// Package rollout says what a machine of a fleet gets of a rollout.
package rollout

import "fmt"

// Share is what a machine gets of a rollout: the candidate or the base.
type Share struct {
	// Candidate and Base are ids of snapshots.
	Candidate string `json:"candidate"`
	Base      string `json:"base"`
	// Wave is the wave of the machine, from 1; 0 for a machine that gets the candidate after the last wave. Name
	// describes the wave.
	Wave int    `json:"wave"`
	Name string `json:"name,omitempty"`
	// Open is the number of waves that have the candidate, and Waves the number of all waves.
	Open  int `json:"open"`
	Waves int `json:"waves"`
	// TakenBack is why no machine gets the candidate any more; empty while the rollout runs.
	TakenBack string `json:"taken_back,omitempty"`
}

// String describes the share in one sentence; empty for no rollout.
func (s Share) String() string {
	switch {
	case s.Waves == 0:
		return ""
	case s.TakenBack != "":
		return fmt.Sprintf("the rollout of snapshot %s was taken back: %s; this machine gets snapshot %s", s.Candidate, s.TakenBack, s.Base)
	case s.Wave == 0:
		return fmt.Sprintf("this machine is in no wave, and gets the base, snapshot %s; the candidate %s is in wave %d of %d", s.Base, s.Candidate, s.Open, s.Waves)
	}
	is := fmt.Sprintf("this machine is in wave %d of %d (%s), and gets the ", s.Wave, s.Waves, s.Name)
	if s.Wave <= s.Open {
		return is + fmt.Sprintf("candidate, snapshot %s; the base is %s", s.Candidate, s.Base)
	}
	return is + fmt.Sprintf("base, snapshot %s; the candidate %s is in wave %d", s.Base, s.Candidate, s.Open)
}
