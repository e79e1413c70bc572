package envoy

import "fmt"

// Verdict is what a round came to.
type Verdict int

const (
	// Unconfirmed: the quorum said neither in time.
	Unconfirmed Verdict = iota
	// Confirmed: the quorum of the Envoys that answer has acknowledged all files.
	Confirmed
	// Rejected: so many Envoys refused that the quorum can't be met.
	Rejected
)

// String is the verdict in small letters.
func (v Verdict) String() string {
	return [...]string{"unconfirmed", "confirmed", "refused"}[v]
}

// Outcome is what Envoys have made of the files of a round.
type Outcome struct {
	Verdict Verdict
	// Answering is how many Envoys count: not those that are down. With none the
	// round is Unconfirmed, and nobody was waited for.
	Answering int
	// Err is why the round ended before its time: the context's error.
	Err error
	// Envoys are all of them, in the order of FleetOptions.Admins.
	Envoys []EnvoyOutcome
}

// EnvoyOutcome is what one Envoy has made of them.
type EnvoyOutcome struct {
	URL string
	// Err is why it gives no answer, and does not count.
	Err error
	// Restarted tells that it was started anew, or for the first time, since the
	// round began.
	Restarted bool
	// States has one for each subscription that it can have, in their order; of what
	// it said last, if it gives no answer now.
	States []Status
	// Refusals are what it says of what it refused.
	Refusals []Refusal
	// NotWarm are the clusters that AwaitOptions.Warm waited for in vain.
	NotWarm []string
}

// State is Acked where all subscriptions are, Refused where one is, and else
// Pending.
func (e EnvoyOutcome) State() State {
	state := Acked
	for _, s := range e.States {
		switch {
		case s.State == Refused:
			return Refused
		case s.State != Acked:
			state = Pending
		}
	}
	if e.States == nil {
		return Pending
	}
	return state
}

// Warm tells whether no Envoy that acknowledged still warms a cluster that came
// with the round.
func (o Outcome) Warm() bool {
	for _, e := range o.Envoys {
		if len(e.NotWarm) > 0 {
			return false
		}
	}
	return true
}

// String is a few words.
func (o Outcome) String() string {
	acked := 0
	for _, e := range o.Envoys {
		if e.Err == nil && e.State() == Acked {
			acked++
		}
	}
	text := fmt.Sprintf("%s: %d of %d Envoys took it", o.Verdict, acked, len(o.Envoys))
	if down := len(o.Envoys) - o.Answering; down > 0 {
		text += fmt.Sprintf(", %d did not answer", down)
	}
	return text
}
