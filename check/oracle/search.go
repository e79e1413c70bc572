package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xdspub/envoy/trial"
)

// limit bounds the search for refused items.
type limit struct {
	faults int           // the largest number of faults
	time   time.Duration // the longest time of all questions together
}

const (
	mostFaults  = 20
	longestTime = 5 * time.Minute
)

var usual = limit{mostFaults, longestTime}

var errLimit = errors.New("the time of the search is over")

// fault is an item that Envoy refuses, with Envoy's answer.
type fault struct {
	*item
	answer trial.Answer
}

// search finds the items that Envoy refuses. Each item comes after the items that it refers to. So the first n
// items are a complete configuration for every n. Envoy names one fault at a time. search finds the faulty item by
// bisection, replaces the item by its stand-in, and asks Envoy about the rest.
type search struct {
	envoy trial.Envoy
	limit limit
	// bootstrap returns a bootstrap with items.
	bootstrap func([]*item) []byte
	faults    []fault
	// rest is Envoy's last answer about the items without faults. It is the zero Answer if Envoy accepts these
	// items.
	rest trial.Answer
}

// run searches until Envoy accepts the rest of the items, or until a limit is reached.
func (s *search) run(ctx context.Context, items []*item) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.limit.time, errLimit)
	defer cancel()
	taken := 0 // the number of accepted items
	for {
		answer, err := s.ask(ctx, items)
		if err != nil || answer.Taken() {
			return err
		}
		s.rest = answer
		if len(s.faults) == s.limit.faults || answer.Hang != "" { // after a hang, each further question may take as long
			return nil
		}
		at, why, err := s.first(limited, items, taken, answer)
		if err != nil && (errors.Is(err, errLimit) || context.Cause(limited) == errLimit) {
			return nil
		}
		if err != nil {
			return err
		}
		taken, s.rest = at, trial.Answer{}
		wrong := items[at]
		items = slices.Delete(slices.Clone(items), at, at+1)
		if wrong.standIn != nil {
			items = slices.Insert(items, at, wrong.standIn)
		}
		if wrong.of != nil { // a stand-in has no resource to report
			s.faults = append(s.faults, fault{wrong, why})
		}
	}
}

// first returns the index of the first refused item, and Envoy's answer. Envoy has accepted the first taken items
// before. why is Envoy's answer about all items.
func (s *search) first(ctx context.Context, items []*item, taken int, why trial.Answer) (int, trial.Answer, error) {
	refused := len(items)
	for refused-taken > 1 {
		middle := (taken + refused) / 2
		answer, err := s.ask(ctx, items[:middle])
		switch {
		case err != nil:
			return 0, why, err
		case answer.Hang != "": // the answer does not tell which items are faulty
			return 0, why, errLimit
		case answer.Taken():
			taken = middle
		default:
			refused, why = middle, answer
		}
	}
	if refused > 1 {
		return refused - 1, why, nil
	}
	none, err := s.ask(ctx, nil) // the base of the bootstrap may be faulty, too
	if err == nil && !none.Taken() {
		err = fmt.Errorf("a bootstrap without any resource is not taken: %s", words(none))
	}
	return 0, why, err
}

// ask asks Envoy about a bootstrap with items. If Envoy hangs, ask asks once more, because the machine may have
// been busy.
func (s *search) ask(ctx context.Context, items []*item) (trial.Answer, error) {
	bootstrap := s.bootstrap(items)
	answer, err := s.envoy.Ask(ctx, bootstrap)
	if err != nil || answer.Hang == "" {
		return answer, err
	}
	return s.envoy.Ask(ctx, bootstrap)
}
