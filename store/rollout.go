package store

import (
	"iter"
	"time"

	"xdspub/diag"
	"xdspub/source/rollout"
	"xdspub/store/waves"
	"xdspub/watch/control"
)

// Rollout brings a candidate to the machines of a target, wave by wave. The machines of open waves get the candidate.
// All other machines get the base, the Head with the Rollout in a field.
type Rollout struct {
	// Candidate is the head of the machines in open waves. Its Rollout is nil.
	Candidate Head       `json:"candidate"`
	Waves     waves.Plan `json:"waves"`
	// Open is the number of open waves, at least 1. Since is when the last wave was opened, by the clock of the writer.
	Open  int       `json:"open"`
	Since time.Time `json:"since"`
	// TakenBack says why no machine has the candidate any more; nil while the rollout runs.
	TakenBack *TakenBack `json:"taken_back,omitempty"`
}

// TakenBack is the reason for which a candidate was taken back, and the time.
type TakenBack struct {
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// valid reports whether the fields of a Rollout are in their bounds. Another process may have written the Rollout.
func (r *Rollout) valid() bool {
	c := &r.Candidate
	return c.valid() && c.Rollout == nil && r.Waves.Valid() && r.Open >= 1 && r.Open <= len(r.Waves)
}

// running returns the rollout whose candidate is out; nil for none.
func (h *Head) running() *Rollout {
	if h == nil || h.Rollout == nil || h.Rollout.TakenBack != nil {
		return nil
	}
	return h.Rollout
}

// of returns the head of a machine: the candidate in an open wave, otherwise the base.
func (h *Head) of(m waves.Machine) Head {
	if r := h.running(); r != nil && r.Waves.Of(m) < r.Open {
		return r.Candidate
	}
	base := *h
	base.Rollout = nil
	return base
}

// lastSerial returns the largest serial of a head.
func (h *Head) lastSerial() int64 {
	switch {
	case h == nil:
		return 0
	case h.Rollout != nil:
		return max(h.Serial, h.Rollout.Candidate.Serial)
	}
	return h.Serial
}

// wave returns the last open wave.
func (r *Rollout) wave() waves.Wave { return r.Waves[r.Open-1] }

// view returns the rollout of a head as the head alone shows the rollout; nil for none.
func (h *Head) view() *control.Rollout {
	r := h.Rollout
	if r == nil {
		return nil
	}
	v := &control.Rollout{
		Snapshot: r.Candidate.Snapshot, Base: h.Snapshot, Wave: r.Open, Waves: len(r.Waves), Name: diag.ClipLine(r.wave().String(), maxWords), Since: r.Since,
		State: control.Acknowledging, Message: "its machines acknowledge",
	}
	if r.TakenBack != nil {
		v.State, v.Message, v.Since = control.TakenBack, diag.ClipLine(r.TakenBack.Reason, maxMessage), r.TakenBack.Time
	}
	return v
}

// share returns what a machine gets of the rollout of a head.
func (h *Head) share(m waves.Machine) (s rollout.Share) {
	r := h.Rollout
	if r == nil {
		return s
	}
	s = rollout.Share{Candidate: r.Candidate.Snapshot, Base: h.Snapshot, Open: r.Open, Waves: len(r.Waves)}
	if i := r.Waves.Of(m); i < len(r.Waves) {
		s.Wave, s.Name = i+1, diag.ClipLine(r.Waves[i].String(), maxWords)
	}
	if r.TakenBack != nil {
		s.TakenBack = diag.ClipLine(diag.Hide(r.TakenBack.Reason), maxMessage)
	}
	return s
}

// isOf reports whether the rollout in the key of a writer is the rollout of a head, or a rollout that has not begun.
func isOf(said *control.Rollout, h *Head) bool {
	r := h.running()
	return said != nil && (said.Wave == 0 || r != nil && said.Wave == r.Open && said.Snapshot == r.Candidate.Snapshot)
}

// Tally counts machines of an open wave.
type Tally struct {
	Machines int `json:"machines"`
	// Silent machines have not been heard of for a while; they don't count for the quorum.
	Silent       int `json:"silent"`
	Acknowledged int `json:"acknowledged"`
}

// reached reports whether the quorum of a wave has acknowledged the candidate.
func (t Tally) reached(w waves.Wave) bool {
	heard := t.Machines - t.Silent
	return heard > 0 && t.Acknowledged*100 >= heard*w.Quorum
}

// counted has the numbers of machines that decide about a rollout.
type counted struct {
	Tally              // of the last open wave
	left    int        // machines that no earlier wave takes
	refuses *Machine   // the first machine that refuses the candidate; nil for none
	missing []*Machine // machines of the wave that have not acknowledged the candidate
}

// count counts the machines.
func (r *Rollout) count(target string, machines iter.Seq[*Machine]) (is counted) {
	for m := range machines {
		if !m.Waves { // the program of the machine does not know rollouts
			continue
		}
		wave := r.Waves.Of(m.member(target))
		if wave >= r.Open-1 {
			is.left++
		}
		if wave < r.Open && m.Serial == r.Candidate.Serial && m.State == Refused && (is.refuses == nil || m.Name < is.refuses.Name) {
			is.refuses = m
		}
		if wave != r.Open-1 {
			continue
		}
		is.Machines++
		switch {
		case m.Serial == r.Candidate.Serial && m.State == Published:
			is.Acknowledged++
			continue
		case m.silent():
			is.Silent++
		}
		is.missing = append(is.missing, m)
	}
	return is
}
