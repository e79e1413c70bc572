package load

import (
	"context"
	"time"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/rollout"
	"xdspub/xds"
)

// Reader reads resources that are in no source tree.
type Reader interface {
	// Read returns the last whole Contents. Read waits for the first Contents; the error says what is missing.
	Read(ctx context.Context) (Contents, error)
}

// Remote is a source of resources that is no source tree, such as a control plane.
type Remote interface {
	Reader
	// Run keeps the Contents current until ctx ends.
	Run(ctx context.Context)
	// Changed receives a value after the Contents or the State have changed. Unreceived values merge.
	Changed() <-chan struct{}
	// Judged tells the Remote the verdict on Contents. Judged must not block.
	Judged(Judgement)
	// State returns the state of the connection.
	State() State
	// Kind says in words what the Remote follows, such as "control plane".
	Kind() string
}

// Contents are the resources of a Remote at one time.
type Contents struct {
	// N numbers the Contents, from 1.
	N uint64
	// Files hold the resources, sorted by the names of their sources, which are unique. A file that has not changed is
	// the same File as in the Contents before.
	Files []*decode.File
	// Findings are faults that no File has.
	Findings diag.List
	// Partial means that more resources of any type may follow.
	Partial bool
}

// Read implements Reader for Contents that do not change.
func (c Contents) Read(context.Context) (Contents, error) { return c, nil }

// Judgement is the verdict on Contents, and on all Contents before.
type Judgement struct {
	// N is the number of the Contents.
	N uint64
	// Accepted means that the Contents are published.
	Accepted bool
	// Findings are the reasons if the Contents are not accepted.
	Findings diag.List
	// GoOn are the types whose faultless changes are published although the Contents are not accepted.
	GoOn []*xds.Type
}

// State is the state of the connection of a Remote.
type State struct {
	Connected bool
	// Server is the connected server; empty if Connected is false.
	Server string
	// Since is the time at which Connected changed last, or at which UnusableSince became zero. A Remote may ignore a
	// short connection: a server that comes and goes is then gone since the first loss.
	Since time.Time
	// UnusableSince is since when the Remote can't use what the other side has; zero if the Remote can. The end of the
	// connection does not change UnusableSince.
	UnusableSince time.Time
	// Error is why the Remote is not connected, or why a connected Remote can't use what the other side has.
	Error string
	// Share is what this machine gets of a rollout of the store; zero without a rollout.
	Share rollout.Share
}

// StaleSince returns since when the other side may have newer Contents; zero while the Remote follows the other side.
func (s State) StaleSince() time.Time {
	switch {
	case !s.UnusableSince.IsZero():
		return s.UnusableSince
	case s.Connected:
		return time.Time{}
	}
	return s.Since
}
