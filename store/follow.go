package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/source/load"
)

// lookAgain is how often a follower reads the head even if etcd tells no change. After the restore of a backup, etcd
// tells no change before it reaches the old revision. A writer reads the head and its file of age keys as often. Tests
// shorten lookAgain.
var lookAgain = time.Minute

// errWatch means that the watch of the head has ended. The follower then reads the head again.
var errWatch = errors.New("the watch of the head has ended")

// follow follows the head until ctx ends.
func (f *Follower) follow(ctx context.Context) {
	var connected bool
	again(ctx, func(works func()) (err error) {
		if connected, err = f.session(ctx); connected {
			works()
		}
		return err
	}, func(err error) {
		if errors.Is(err, errWatch) {
			f.lost = time.Now()
		} else {
			f.fail(err, connected)
		}
	})
}

// session follows the head by one connection. connected means that the store has answered.
func (f *Follower) session(ctx context.Context) (connected bool, err error) {
	c, err := connect(ctx, f.options.Options)
	if err != nil {
		return false, err
	}
	defer c.close()
	defer func() { err = c.explained(err) }()
	for {
		revision, err := f.look(ctx, c)
		if err != nil && !isFault(err) {
			return connected, err
		}
		if connected = true; err != nil {
			f.fail(err, true)
		}
		if err := f.watch(ctx, c, revision); err != nil {
			return connected, err
		}
	}
}

// isFault reports whether an error is a fault of the stored keys. Such a fault lasts until the writer moves the head.
func isFault(err error) bool {
	_, none := errors.AsType[*NoTargetError](err)
	return none || isIncomplete(err)
}

func (f *Follower) reader(c *client) reader {
	return reader{client: c, keys: f.keys, registry: f.registry, ageKeys: f.options.AgeKeys}
}

// look reads the head and the changes that lead to it, and returns the revision of the store.
func (f *Follower) look(ctx context.Context, c *client) (revision int64, err error) {
	r := f.reader(c)
	for range readTries {
		var head *Head
		var moved int64
		if head, moved, revision, err = r.head(ctx); err != nil {
			return revision, err
		}
		err = f.reach(ctx, r, head, moved)
		if _, gone := errors.AsType[*GoneError](err); !gone {
			break // a GoneError: the writer may have removed a step meanwhile
		}
	}
	if err != nil {
		return revision, err
	}
	f.works()
	return revision, nil
}

// readTries bounds the attempts to read a head whose steps the writer removes.
const readTries = 3

// reach reads the resources of the head of this machine, and hands them to take. reach ignores a head that is not newer
// than the last one. out is the value of the key of the head.
func (f *Follower) reach(ctx context.Context, r reader, out *Head, moved int64) error {
	if out == nil {
		return r.client.noHead(ctx, f.options.Address, f.keys)
	}
	head := out.of(f.member())
	switch {
	case head.Serial < f.at.serial:
		if moved != f.moved {
			f.moved = moved
			f.options.Log.Write(event.StoreWentBack{Store: f.options.Address.String(), Serial: head.Serial, Has: f.at.serial})
		}
		return nil
	case head.Serial == f.at.serial:
		f.recordShare(out)
		return nil
	}
	tree, err := r.advance(ctx, f.at, head)
	if err != nil {
		if _, gone := errors.AsType[*GoneError](err); !gone && isFault(err) {
			f.acks.judged(head, load.Judgement{Findings: diag.List{{Message: err.Error()}}})
		}
		return err
	}
	if err := f.take(head, tree); err != nil {
		return err
	}
	f.at, f.moved = at{head.Serial, head.Step.Serial, tree, head.Tree}, moved
	f.recordShare(out)
	return nil
}

// watch follows the heads after a revision. If watch returns nil, the caller reads the head again.
func (f *Follower) watch(ctx context.Context, c *client, revision int64) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), jittered(lookAgain))
	defer cancel()
	var lost atomic.Bool
	go crash.Guard(func() {
		c.waitLost(ctx)
		lost.Store(ctx.Err() == nil)
		cancel()
	}, f.options.Log.Crashed)()
	r := f.reader(c)
	for w := range c.etcd.Watch(ctx, f.keys.head(), clientv3.WithRev(revision+1)) {
		if err := w.Err(); err != nil { // such as a revision that was compacted
			return fmt.Errorf("%w: %w", errWatch, err)
		}
		if len(w.Events) == 0 {
			continue
		}
		last := w.Events[len(w.Events)-1]
		var head *Head
		var err error
		if last.Type == mvccpb.Event_PUT {
			var h Head
			h, err = parseHead(f.keys.head(), last.Kv.Value)
			head = &h
		}
		if err == nil {
			err = f.reach(ctx, r, head, last.Kv.ModRevision)
		}
		_, gone := errors.AsType[*GoneError](err)
		switch {
		case gone:
			return nil // the writer may have removed a step meanwhile
		case err == nil:
			f.works()
		case isFault(err):
			f.fail(err, true)
		default:
			return err
		}
	}
	if lost.Load() {
		return errWatch
	}
	return nil
}
