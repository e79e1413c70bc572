package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/internal/parallel"
)

// Report is what a store says of a fleet.
type Report struct {
	Store   string   `json:"store"`
	Targets []Target `json:"targets"`
	// InSync reports whether each target has a valid head, a writer, and only machines in sync.
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

const (
	// beatEvery is how often a machine is heard of, and silentAfter how long a machine may be silent.
	beatEvery   = 30 * time.Second
	silentAfter = 3 * beatEvery
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
	if writer != nil {
		t.Writer = writerIn(writer)
	}
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
	errs := make([]error, len(t.Machines))
	var asking parallel.Group
	for first := range askers {
		asking.Go(func() {
			for i := first; i < len(t.Machines); i += askers {
				m := &t.Machines[i]
				m.Silent, errs[i] = c.silent(ctx, m.lease)
				m.Standing = m.standing(t.Head)
			}
		})
	}
	asking.Wait()
	return cmp.Or(errs...)
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

// standing says how the machine stands to a head.
func (m *Machine) standing(h Head) Standing {
	switch {
	case m.Silent > int64(silentAfter/time.Second):
		return Silent
	case h.Serial != 0 && m.State == Published && m.Snapshot == h.Snapshot:
		return InSync
	case h.Serial == 0, m.State == Published, m.Serial < h.Serial: // a damaged head has no serial
		return Behind
	}
	return Broken
}

// inSync reports whether the target has a valid head and a writer, and all its machines are in sync.
func (t *Target) inSync() bool {
	return t.Error == "" && t.Writer != "" && !slices.ContainsFunc(t.Machines, func(m Machine) bool { return m.Standing != InSync })
}
