package envoy

import (
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
)

// Verdict is the result of an AckWait.
type Verdict int

const (
	// Unconfirmed: neither of the others before the timeout.
	Unconfirmed Verdict = iota
	// Confirmed: the quorum of the Envoys that answer has acknowledged all files.
	Confirmed
	// RefusedByQuorum: so many Envoys refused the files that the quorum can't be met.
	RefusedByQuorum
)

// String returns the verdict in small letters.
func (v Verdict) String() string {
	return [...]string{"unconfirmed", "confirmed", "refused"}[v]
}

// Outcome is the answer of all Envoys to the files of an AckWait.
type Outcome struct {
	Verdict Verdict
	// Answering is the number of Envoys that count; an Envoy that is down does not count. If Answering is 0,
	// the verdict is Unconfirmed, and Await waited for no Envoy.
	Answering int
	// Err is the context's error if the context ended the wait.
	Err error
	// Envoys has an outcome for each of FleetOptions.Admins, in order.
	Envoys []EnvoyOutcome
}

// EnvoyOutcome is the answer of one Envoy.
type EnvoyOutcome struct {
	URL string
	// Err is why the Envoy gives no answer, and does not count.
	Err error
	// Restarted means that the Envoy was started, or restarted, since Begin.
	Restarted bool
	// States has the last status of each subscription that the Envoy can have, in order.
	States []Status
	// Refusals are the reasons that the Envoy gives.
	Refusals []Refusal
	// NotWarm are the clusters that were not warm before the timeout (AwaitOptions.Warm).
	NotWarm []string
}

// State returns Acked if all subscriptions are Acked, Refused if one is Refused, and otherwise Pending.
func (e EnvoyOutcome) State() State { return stateOf(e.States) }

func stateOf(list []Status) State {
	state := Acked
	for _, s := range list {
		switch {
		case s.State == Refused:
			return Refused
		case s.State != Acked:
			state = Pending
		}
	}
	if list == nil {
		return Pending
	}
	return state
}

// String returns one line for logs: the verdict, and each Envoy that has not acknowledged.
func (o Outcome) String() string {
	var b strings.Builder
	acked := 0
	for _, e := range o.Envoys {
		if e.Err == nil && e.State() == Acked {
			acked++
		}
	}
	fmt.Fprintf(&b, "%s: %d of %d Envoys acknowledged it", o.Verdict, acked, len(o.Envoys))
	for _, e := range o.Envoys {
		switch {
		case e.Err != nil:
			fmt.Fprintf(&b, "; %v", e.Err)
		case len(e.NotWarm) > 0:
			fmt.Fprintf(&b, "; envoy %s: not warm: %s", e.URL, diag.Few(e.NotWarm, mostNames))
		case e.State() != Acked:
			var open []string
			for _, s := range e.States {
				if s.State != Acked {
					open = append(open, s.String())
				}
			}
			fmt.Fprintf(&b, "; envoy %s: %s", e.URL, diag.Few(open, mostNames))
		}
	}
	return b.String()
}

// String returns the subscription and its state, such as "RDS web REJECTED".
func (s Status) String() string {
	return strings.Join(slices.DeleteFunc([]string{s.API, s.Name, s.State.String()}, func(word string) bool { return word == "" }), " ")
}

// mostNames is how many names an error or a line of the log lists.
const mostNames = 5
