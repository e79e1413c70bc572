package validate

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Timings holds the time that each rule took in a Run, summed over all goroutines. No finding depends on it.
type Timings struct {
	mu     sync.Mutex
	byRule map[string]time.Duration
}

// RuleTime is the time of one rule.
type RuleTime struct {
	Code string
	Took time.Duration
}

// Sorted returns the times of all rules, the slowest first.
func (t *Timings) Sorted() []RuleTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []RuleTime
	for code, took := range t.byRule {
		list = append(list, RuleTime{code, took})
	}
	slices.SortFunc(list, func(a, b RuleTime) int { return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Code, b.Code)) })
	return list
}

// Add adds the times of another Run to those of t.
func (t *Timings) Add(other *Timings) {
	for _, r := range other.Sorted() {
		t.add(r.Code, r.Took)
	}
}

func (t *Timings) add(code string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byRule == nil {
		t.byRule = make(map[string]time.Duration)
	}
	t.byRule[code] += took
}

// stopwatch measures the time of rules on one goroutine. The zero value measures nothing and costs nothing.
type stopwatch struct {
	took map[*Rule]time.Duration
}

func (t *Timings) stopwatch() stopwatch {
	if t == nil {
		return stopwatch{}
	}
	return stopwatch{make(map[*Rule]time.Duration)}
}

// start returns the time at which a rule begins; the zero time if the stopwatch measures nothing.
func (s stopwatch) start() time.Time {
	if s.took == nil {
		return time.Time{}
	}
	return time.Now()
}

// ran adds the time since start to the time of a rule.
func (s stopwatch) ran(r *Rule, start time.Time) {
	if s.took != nil {
		s.took[r] += time.Since(start)
	}
}

// stop adds the measured times to a Timings.
func (s stopwatch) stop(to *Timings) {
	for r, took := range s.took {
		to.add(r.Code, took)
	}
}
