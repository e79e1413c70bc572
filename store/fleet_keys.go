package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/internal/parallel"
)

// fleetKeys has the acknowledgements of the machines of a target, and the orders of operators, for the writer. A
// fleetKeys is safe for concurrent use.
type fleetKeys struct {
	client  *client
	keys    keys
	changed chan struct{} // full after a change

	mu       sync.Mutex
	known    bool // the keys have been read
	machines map[string]*Machine
	given    map[string]*Order
	listened time.Time // when listen last asked for silent machines
}

func newFleetKeys(c *client, k keys) *fleetKeys {
	return &fleetKeys{client: c, keys: k, changed: make(chan struct{}, 1), machines: make(map[string]*Machine)}
}

// run follows the keys until ctx ends.
func (c *fleetKeys) run(ctx context.Context, failed func(error)) {
	again(ctx, func(works func()) error { return c.session(ctx, works) }, func(err error) {
		if !errors.Is(err, errWatch) {
			failed(err)
		}
	})
}

// session reads the keys, and follows them. session calls works when the keys are read.
func (c *fleetKeys) session(ctx context.Context, works func()) error {
	revision, err := c.read(ctx)
	if err != nil {
		return err
	}
	works()
	c.signal()
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	machines := c.client.etcd.Watch(ctx, c.keys.machines(), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	orders := c.client.etcd.Watch(ctx, c.keys.orders(), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	for {
		select {
		case w, ok := <-machines:
			if !ok || w.Err() != nil {
				return fmt.Errorf("%w: %w", errWatch, w.Err())
			}
			c.take(w.Events)
		case w, ok := <-orders:
			if !ok || w.Err() != nil {
				return fmt.Errorf("%w: %w", errWatch, w.Err())
			}
			if err := c.readOrders(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
		c.signal()
	}
}

func (c *fleetKeys) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// read reads all keys. All changes after the returned revision are still to come.
func (c *fleetKeys) read(ctx context.Context) (revision int64, err error) {
	if _, revision, err = c.client.get(ctx, c.keys.head()); err != nil {
		return 0, err
	}
	machines := make(map[string]*Machine)
	err = c.client.below(ctx, c.keys.machines(), func(kv *mvccpb.KeyValue) error {
		m := machineIn(kv, c.keys)
		machines[m.Name] = &m
		return nil
	})
	if err != nil {
		return 0, err
	}
	if err = c.readOrders(ctx); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, m := range machines {
		if was := c.machines[name]; was != nil && was.lease == m.lease {
			m.Silent = was.Silent
		}
	}
	c.machines, c.known = machines, true
	return revision, nil
}

func (c *fleetKeys) readOrders(ctx context.Context) error {
	given, err := c.client.orders(ctx, c.keys)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = given
	return nil
}

// take applies changes of the keys of machines.
func (c *fleetKeys) take(changes []*clientv3.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range changes {
		if e.Type == mvccpb.Event_DELETE {
			delete(c.machines, strings.TrimPrefix(string(e.Kv.Key), c.keys.machines()))
			continue
		}
		m := machineIn(e.Kv, c.keys)
		c.machines[m.Name] = &m
	}
}

// orders returns the orders of operators. known is false before the keys have been read.
func (c *fleetKeys) orders() (given map[string]*Order, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given, c.known
}

// count is Rollout.count for the machines. The result has copies of machines.
func (c *fleetKeys) count(r *Rollout, target string) (is counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is = r.count(target, maps.Values(c.machines))
	copied := func(m *Machine) *Machine { of := *m; return &of }
	if is.refuses != nil {
		is.refuses = copied(is.refuses)
	}
	for i := range is.missing {
		is.missing[i] = copied(is.missing[i])
	}
	return is
}

// listen asks the store how long ago machines were heard of, unless listen has asked within beatEvery.
func (c *fleetKeys) listen(ctx context.Context, machines []*Machine) error {
	if c.mu.Lock(); time.Since(c.listened) < beatEvery {
		c.mu.Unlock()
		return nil
	}
	c.listened = time.Now()
	c.mu.Unlock()
	if err := c.client.hear(ctx, machines); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range machines {
		if is := c.machines[m.Name]; is != nil && is.lease == m.lease {
			is.Silent = m.Silent
		}
	}
	return nil
}

// hear sets Silent of machines.
func (c *client) hear(ctx context.Context, machines []*Machine) error {
	errs := make([]error, len(machines))
	var asking parallel.Group
	for first := range askers {
		asking.Go(func() {
			for i := first; i < len(machines); i += askers {
				machines[i].Silent, errs[i] = c.silent(ctx, machines[i].lease)
			}
		})
	}
	asking.Wait()
	return cmp.Or(errs...)
}
