package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/store/waves"
	"xdspub/watch/control"
)

// Report is what a store says of a fleet.
type Report struct {
	Store   string   `json:"store"`
	Targets []Target `json:"targets"`
	// InSync reports whether each target has a valid head, a writer, no rollout, and only machines in sync.
	InSync bool `json:"in_sync"`
}

// Target is what a store says of a target.
type Target struct {
	Target string `json:"target,omitempty"` // empty for a source tree without targets
	Head   Head   `json:"head"`
	// Error is why machines can't use the head; empty if they can. With an Error, Head has no fields.
	Error string `json:"error,omitempty"`
	// Writer is the present writer; empty for none.
	Writer   string    `json:"writer,omitempty"`
	Machines []Machine `json:"machines"`
	// Rollout is the running rollout, or a rollout that was taken back; nil for none. Wave counts the machines of the
	// last open wave of Rollout.
	Rollout *control.Rollout `json:"rollout,omitempty"`
	Wave    Tally            `json:"wave,omitzero"`
	// Paused is the decision of an operator who pauses rollouts; nil for none.
	Paused *Order `json:"paused,omitempty"`
}

// Standing says how a machine stands to the head of its target.
type Standing string

const (
	InSync Standing = "in sync" // the machine has published the head
	Behind Standing = "behind"  // the machine has not published the head yet
	Silent Standing = "silent"  // the machine has not been heard of for a while
	Broken Standing = "broken"  // the machine refuses the head, or its key is invalid
)

// Machine is a machine that follows a target.
type Machine struct {
	Name string `json:"name"`
	Ack
	Standing Standing `json:"standing"`
	// Silent is how many seconds ago the machine was heard of, by the clock of the store.
	Silent int64 `json:"silent_seconds"`
	lease  clientv3.LeaseID
}

// beatEvery is how often a machine renews its lease. Tests shorten beatEvery.
var beatEvery = 30 * time.Second

const (
	// silentAfter is how long a machine may be silent: three times beatEvery.
	silentAfter = 90 * time.Second
	// rememberFor is how long the store knows a silent machine.
	rememberFor = 24 * time.Hour
	// askers is the number of concurrent requests.
	askers = 16
)

// NoTargetError means that a store has no head of a target.
type NoTargetError struct {
	Key   string
	Known []string // the targets that the store has
}

func (e *NoTargetError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("the store has no key %s: no writer has published here: run xdspub watch --store, or correct the address", e.Key)
	}
	return fmt.Sprintf("the store has no key %s: it has the targets %s: choose one by --store-target", e.Key, diag.Few(e.Known, 10))
}

// Ask asks a store for a target; for all targets if target is empty.
func Ask(ctx context.Context, o Options, target string) (Report, error) {
	r := Report{Store: o.Address.String(), InSync: true}
	c, err := connect(ctx, o)
	if err != nil {
		return r, err
	}
	defer c.close()
	targets := []string{target}
	if target == "" {
		if targets, err = c.targets(ctx, o.Address); err != nil {
			return r, c.explained(err)
		}
		if len(targets) == 0 {
			return r, &NoTargetError{Key: o.Address.keys("").head()}
		}
	}
	for _, name := range targets {
		t, err := c.target(ctx, o.Address, o.Address.keys(name))
		if err != nil {
			return r, c.explained(err)
		}
		r.InSync = r.InSync && t.inSync()
		r.Targets = append(r.Targets, t)
	}
	return r, nil
}

// targets returns the targets that a store has.
func (c *client) targets(ctx context.Context, a Address) (names []string, err error) {
	prefix := a.Prefix + "/heads/"
	err = c.below(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		names = append(names, diag.ClipLine(strings.TrimPrefix(string(kv.Key), prefix), maxWords))
		return nil
	}, clientv3.WithKeysOnly())
	return names, err
}

// target returns what the store says of a target.
func (c *client) target(ctx context.Context, at Address, k keys) (t Target, err error) {
	if t.Target, t.Machines = k.target, []Machine{}; k.target == noTarget {
		t.Target = ""
	}
	r := reader{client: c, keys: k}
	head, _, _, err := r.head(ctx)
	_, foreign := errors.AsType[*ForeignError](err)
	switch {
	case foreign:
		t.Error = err.Error()
	case err != nil:
		return t, err
	case head == nil:
		return t, c.noHead(ctx, at, k)
	default:
		t.Head = *head
	}
	writer, _, err := c.get(ctx, k.writer())
	if err != nil {
		return t, err
	}
	t.Rollout = t.Head.view()
	if writer != nil {
		is := termIn(writer)
		if t.Writer = is.Writer; isOf(is.Rollout, &t.Head) {
			t.Rollout = is.Rollout.Shown()
		}
	}
	given, err := c.orders(ctx, k)
	if err != nil && !isForbidden(err) {
		return t, err
	}
	t.Paused = given[pauseOrder]
	err = c.below(ctx, k.machines(), func(kv *mvccpb.KeyValue) error {
		t.Machines = append(t.Machines, machineIn(kv, k))
		return nil
	})
	if err != nil {
		return t, err
	}
	return t, t.judge(ctx, c)
}

// noHead returns the error for a target without a head. If the user may list the targets, the error names them.
func (c *client) noHead(ctx context.Context, a Address, k keys) error {
	names, _ := c.targets(ctx, a)
	return &NoTargetError{Key: k.head(), Known: names}
}

// machineIn returns the machine that a key describes.
func machineIn(kv *mvccpb.KeyValue, k keys) Machine {
	m := Machine{Name: diag.ClipLine(strings.TrimPrefix(string(kv.Key), k.machines()), maxWords), lease: clientv3.LeaseID(kv.Lease)}
	if err := parse(string(kv.Key), kv.Value, maxAck, &m.Ack); err != nil {
		m.Ack = Ack{State: Failed, Message: err.Error()}
	}
	m.Message, m.Version = diag.ClipLine(m.Message, maxMessage), diag.ClipLine(m.Version, maxWords)
	if !snapshotID.MatchString(m.Snapshot) {
		m.Snapshot = ""
	}
	return m
}

// judge asks the store how long ago each machine was heard of, and says how the machines stand.
func (t *Target) judge(ctx context.Context, c *client) error {
	all := make([]*Machine, len(t.Machines))
	for i := range all {
		all[i] = &t.Machines[i]
	}
	if err := c.hear(ctx, all); err != nil {
		return err
	}
	for _, m := range all {
		m.Standing = m.standing(t.headOf(m))
	}
	if r := t.Head.Rollout; r != nil {
		t.Wave = r.count(t.Target, slices.Values(all)).Tally
	}
	return nil
}

// silent returns how many seconds ago the owner of a lease was heard of.
func (c *client) silent(ctx context.Context, lease clientv3.LeaseID) (int64, error) {
	if lease == 0 {
		return int64(rememberFor / time.Second), nil // somebody else has written the key
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	l, err := c.etcd.TimeToLive(ctx, lease)
	if err != nil {
		return 0, err
	}
	return max(0, l.GrantedTTL-max(0, l.TTL)), nil
}

// silent reports whether the machine has not been heard of for a while.
func (m *Machine) silent() bool { return m.Silent > int64(silentAfter/time.Second) }

// member returns the machine as a member of a wave of a target.
func (m *Machine) member(target string) waves.Machine {
	return waves.Machine{Target: target, Name: m.Name, Labels: m.Labels}
}

// headOf returns the head that a machine must publish.
func (t *Target) headOf(m *Machine) Head {
	member := m.member(t.Target)
	if !m.Waves {
		member.Name = "" // in no wave
	}
	return t.Head.of(member)
}

// standing returns the Standing of the machine.
func (m *Machine) standing(h Head) Standing {
	switch {
	case m.silent():
		return Silent
	case h.Serial != 0 && m.State == Published && m.Snapshot == h.Snapshot:
		return InSync
	case h.Serial == 0, m.State == Published, m.Serial < h.Serial: // a damaged head has no serial
		return Behind
	}
	return Broken
}

// inSync reports whether the target has a valid head, a writer and no rollout, and all its machines are in sync.
func (t *Target) inSync() bool {
	return t.Error == "" && t.Writer != "" && t.Rollout == nil &&
		!slices.ContainsFunc(t.Machines, func(m Machine) bool { return m.Standing != InSync })
}
