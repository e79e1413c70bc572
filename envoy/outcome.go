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
	// Unconfirmed: there was no other verdict before the timeout, or no Envoy counts.
	Unconfirmed Verdict = iota
	// Confirmed: the quorum of the Envoys that count has acknowledged all files.
	Confirmed
	// RefusedByQuorum: so many Envoys refused the files that the quorum can't be met.
	RefusedByQuorum
)

// String returns unconfirmed, confirmed or refused.
func (v Verdict) String() string {
	return [...]string{"unconfirmed", "confirmed", "refused"}[v]
}

// Outcome is the answer of all Envoys to the files of an AckWait.
type Outcome struct {
	Verdict Verdict
	// Answering is the number of Envoys that count. An Envoy that was down before the rename does not count; an
	// Envoy that goes down after it counts for a few seconds. If Answering is 0, the verdict is Unconfirmed, and
	// Await did not wait for the timeout.
	Answering int
	// Err is the context's error if the context ended the wait.
	Err error
	// Envoys has an outcome for each of FleetOptions.Admins, in order.
	Envoys []EnvoyOutcome
}

// EnvoyOutcome is the answer of one Envoy.
type EnvoyOutcome struct {
	URL string
	// Err is the reason if the Envoy did not answer the last question. The Envoy may count all the same.
	Err error
	// Restarted means that the Envoy was started or restarted since Begin, or did not answer Begin.
	Restarted bool
	// States has the last status of each subscription that the Envoy can have, in order.
	States []Status
	// Refusals are the reasons for Refused states, if the verdict is RefusedByQuorum.
	Refusals []Refusal
	// NotWarm are the clusters that were not warm before the timeout (AwaitOptions.Warm).
	NotWarm []string
}

// State returns Refused if one subscription is Refused, Acked if all subscriptions are Acked, and otherwise
// Pending. An Envoy that gave no answer is Pending; an Envoy that can have none of the subscriptions is Acked.
func (e EnvoyOutcome) State() State { return stateOf(e.States) }

// stateOf is EnvoyOutcome.State. A nil list means that the Envoy gave no answer.
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
