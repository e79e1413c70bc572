package envoy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// String is one line for logs: the verdict, and what stands against it.
func (o Outcome) String() string {
	var b strings.Builder
	acked := 0
	for _, e := range o.Envoys {
		if e.Err == nil && e.State() == Acked {
			acked++
		}
	}
	fmt.Fprintf(&b, "%s: %d of %d Envoys took it", o.Verdict, acked, len(o.Envoys))
	for _, e := range o.Envoys {
		switch {
		case e.Err != nil:
			fmt.Fprintf(&b, "; %v", e.Err)
		case len(e.NotWarm) > 0:
			fmt.Fprintf(&b, "; envoy %s: not warm: %s", e.URL, few(e.NotWarm))
		case e.State() != Acked:
			var open []string
			for _, s := range e.States {
				if s.State != Acked {
					open = append(open, s.String())
				}
			}
			fmt.Fprintf(&b, "; envoy %s: %s", e.URL, few(open))
		}
	}
	return b.String()
}

// String is a subscription with its state, such as "RDS web REFUSED".
func (s Status) String() string {
	return strings.Join(slices.DeleteFunc([]string{s.API, s.Name, s.State.String()}, func(word string) bool { return word == "" }), " ")
}

// few are the first of many.
func few(list []string) string {
	const most = 5
	if n := len(list) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), n)
	}
	return strings.Join(list, ", ")
}

const (
	// maxWord is how much of a name or a version is kept, and maxText of a sentence.
	maxWord = 1 << 10
	maxText = 4 << 10
)

// clip is a text of somebody else's, fit to be shown: cut off where it has more than so
// many bytes, and without what a terminal would obey.
func clip(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}
