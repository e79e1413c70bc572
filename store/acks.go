package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/source/load"
)

// spread is the longest delay of an acknowledgement, so that many machines don't write at once. Tests shorten spread.
var spread = 2 * time.Second

// acknowledger writes the key of a machine.
type acknowledger struct {
	follower *Follower
	news     chan struct{} // full while wanted is not written
	said     string        // the last logged error

	mu     sync.Mutex
	wanted Ack
}

func newAcknowledger(f *Follower) *acknowledger {
	return &acknowledger{follower: f, news: make(chan struct{}, 1)}
}

// judged sets the wanted acknowledgement after the verdict on a head, or after a head that can't be read.
func (a *acknowledger) judged(h Head, j load.Judgement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	is := Ack{
		Layout: layout, Serial: h.Serial, Snapshot: a.wanted.Snapshot, State: Refused, Version: a.follower.options.Version,
		Waves: true, Labels: a.follower.options.Labels,
	}
	if h.Serial < a.wanted.Serial && a.follower.unusable() { // the later head can't be read, and stays refused
		if is = a.wanted; j.Accepted {
			is.Snapshot = h.Snapshot
		}
	} else if j.Accepted {
		is.Snapshot, is.State = h.Snapshot, Published
	} else if len(j.Findings) > 0 {
		is.Message = diag.ClipLine(diag.Hide(j.Findings[0].Message), maxMessage)
	}
	is.Time = a.wanted.Time
	if is == a.wanted {
		return
	}
	is.Time = time.Now().UTC().Round(0)
	a.wanted = is
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// run writes acknowledgements until ctx ends.
func (a *acknowledger) run(ctx context.Context) {
	select { // nothing to say before the first judgement
	case <-a.news:
	case <-ctx.Done():
		return
	}
	again(ctx, func(works func()) error { return a.session(ctx, works) }, func(err error) {
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			a.fail(err)
		}
	})
}

// fail logs an error, unless the last logged error is the same.
func (a *acknowledger) fail(err error) {
	at := a.follower.options.Address
	err = fmt.Errorf("acknowledge at %s: %w", a.key(), err)
	if text := err.Error(); text != a.said {
		a.said = text
		a.follower.options.Log.Write(event.StoreFailed{Store: at.String(), Error: err})
	}
}

func (a *acknowledger) key() string {
	return a.follower.keys.machines() + a.follower.options.Machine
}

// session writes acknowledgements with one lease, and keeps the lease alive. session calls works after each write.
func (a *acknowledger) session(ctx context.Context, works func()) (err error) {
	c, err := connect(ctx, a.follower.options.Options)
	if err != nil {
		return err
	}
	defer c.close()
	defer func() { err = c.explained(err) }()
	lease, err := c.grant(ctx, rememberFor)
	if err != nil {
		return err
	}
	beat := time.After(jittered(beatEvery)) // an acknowledgement keeps no lease alive
	for {
		if err := a.write(ctx, c, lease); err != nil {
			return err
		}
		works()
		a.said = ""
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case <-a.news:
				waits = false
			case <-beat:
				if err := c.beat(ctx, lease); err != nil {
					return err
				}
				beat = time.After(jittered(beatEvery))
			}
		}
		select {
		case <-time.After(jittered(spread)):
		case <-ctx.Done():
			return nil
		}
	}
}

// write writes the wanted acknowledgement.
func (a *acknowledger) write(ctx context.Context, c *client, lease clientv3.LeaseID) error {
	a.mu.Lock()
	text, err := json.Marshal(a.wanted)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_, err = c.etcd.Put(ctx, a.key(), string(text), clientv3.WithLease(lease))
	return err
}

// grant returns a new lease.
func (c *client) grant(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	l, err := c.etcd.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return 0, fmt.Errorf("ask for a lease: %w", err)
	}
	return l.ID, nil
}

// beat keeps a lease alive.
func (c *client) beat(ctx context.Context, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_, err := c.etcd.KeepAliveOnce(ctx, lease)
	return err
}
