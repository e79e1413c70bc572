package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"xdspub/internal/crash"
	"xdspub/watch/control"
)

// Check judges a fleet in which a part of the machines has a candidate. Its methods are safe for concurrent use.
type Check interface {
	// Run runs the check with about, a line of JSON. If failed is true, the candidate has to be taken back. An error
	// without failed means that the check can't tell.
	Run(ctx context.Context, about []byte) (failed bool, err error)
	// String returns a name without secrets.
	String() string
}

// checkEvery is the time between two runs of the checks. Tests shorten checkEvery.
var checkEvery = 10 * time.Second

// About is what a Check gets, as JSON.
type About struct {
	Store    string `json:"store"`
	Target   string `json:"target,omitempty"`
	Snapshot string `json:"snapshot"` // the candidate
	Base     string `json:"base"`     // the snapshot of all other machines
	Wave     int    `json:"wave"`     // the last open wave, from 1
	Waves    int    `json:"waves"`
}

// checking is the state of the checks in the last open wave.
type checking struct {
	wave    waveKey
	began   time.Time // when the last run began
	running bool
	// passed is when the last successful run began; zero for none.
	passed time.Time
	// failed is why the last run failed; nil if it did not. unknown is why the last run can't tell; nil if it can.
	failed, unknown error
}

// waveKey identifies an open wave.
type waveKey struct {
	candidate int64 // the serial of the step
	open      int
}

// checkResult is the end of a run.
type checkResult struct {
	wave   waveKey
	began  time.Time
	failed bool
	err    error
}

// checkAgain runs the checks if a run is due: every checkEvery, and at the end of the bake time.
func (t *term) checkAgain(ctx context.Context, r *Rollout, is waiting) {
	due := t.now().Sub(t.check.began) >= checkEvery || is.state == control.Checking && t.check.unknown == nil
	if len(t.options.Checks) == 0 || !t.isOut(r) || t.check.running || !due {
		return
	}
	t.check.began, t.check.running = t.now(), true
	result := checkResult{wave: t.check.wave, began: t.check.began}
	about := About{
		Store: t.options.Address.String(), Target: t.target, Snapshot: r.Candidate.Snapshot, Base: t.head.Snapshot, Wave: r.Open, Waves: len(r.Waves),
	}
	go crash.Guard(func() {
		result.failed, result.err = runChecks(ctx, t.options.Checks, about)
		t.checked <- result
	}, t.log.Crashed)()
}

// runChecks runs checks until one does not pass.
func runChecks(ctx context.Context, all []Check, about About) (failed bool, err error) {
	defer crash.Catch(&err)
	text, err := json.Marshal(about)
	if err != nil {
		return false, err
	}
	for _, c := range all {
		if failed, err = c.Run(ctx, append(text, '\n')); err == nil {
			continue
		}
		if failed {
			return true, fmt.Errorf("the check %s fails: %w", c, err)
		}
		return false, fmt.Errorf("the check %s can't tell: %w", c, err)
	}
	return false, nil
}

// end records the result of a run.
func (c *checking) end(r checkResult) {
	c.running = false
	switch {
	case r.wave != c.wave: // the run was about an earlier wave
	case r.failed:
		c.failed = r.err
	default:
		if c.unknown = r.err; r.err == nil {
			c.passed = r.began
		}
	}
}
