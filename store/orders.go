package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
)

// Order is the value of a key by which an operator tells the writer of a target what to do with rollouts.
type Order struct {
	Layout int       `json:"layout"`
	By     string    `json:"by"` // user@host
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"` // by the clock of the operator
	// Candidate identifies the rollout by the serial of the step to the candidate; 0 for a pause, which concerns all
	// rollouts.
	Candidate int64 `json:"candidate,omitempty"`
}

// The kinds of orders.
const (
	pauseOrder = "pause" // the writer opens no wave, and begins no rollout
	abortOrder = "abort" // the writer takes the candidate back
	retryOrder = "retry" // the writer begins the rollout of a candidate that was taken back
)

// maxOrders bounds the keys of orders that a writer reads.
const maxOrders = 10

// String describes who has given the order, and why.
func (o *Order) String() string {
	if o.Reason == "" {
		return "by " + o.By
	}
	return fmt.Sprintf("by %s: %s", o.By, o.Reason)
}

// pause describes an order to pause.
func (o *Order) pause() string { return "rollouts are paused " + o.String() }

// orders returns the beginning of the keys of orders.
func (k keys) orders() string { return k.of("orders") + "/" }

// orders reads the orders of a target, by kind. An invalid value counts as an order, because a damaged pause must
// not let rollouts continue.
func (c *client) orders(ctx context.Context, k keys) (map[string]*Order, error) {
	all := make(map[string]*Order)
	err := c.below(ctx, k.orders(), func(kv *mvccpb.KeyValue) error {
		o := new(Order)
		if err := parse(string(kv.Key), kv.Value, maxAck, o); err != nil {
			o = &Order{By: "somebody unknown", Reason: err.Error()}
		}
		o.By, o.Reason = diag.ClipLine(o.By, maxWords), diag.ClipLine(diag.Hide(o.Reason), maxMessage)
		if all[strings.TrimPrefix(string(kv.Key), k.orders())] = o; len(all) > maxOrders {
			return &ForeignError{k.orders(), fmt.Sprintf("more than %d keys", maxOrders)}
		}
		return nil
	})
	return all, err
}

// give writes an order.
func (c *client) give(ctx context.Context, k keys, kind string, o Order) error {
	o.Layout, o.Time = layout, time.Now().UTC().Round(0)
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, _, err = c.commit(ctx, nil, clientv3.OpPut(k.orders()+kind, string(text)))
	return err
}

const (
	// orderTime is how long an operator waits until the writer has executed an order.
	orderTime = 30 * time.Second
	// noticeTime is how long an operator waits until the writer has noticed a pause or its end.
	noticeTime = 2 * time.Second
	// askAgain is the time between two looks at the writer.
	askAgain = 200 * time.Millisecond
)

// Decision is a decision of an operator about rollouts.
type Decision struct {
	By     string // user@host
	Reason string
}

// DecidedError means that the store needs no order, such as an abort without a rollout.
type DecidedError struct{ Reason string }

func (e *DecidedError) Error() string { return e.Reason }

// PauseRollouts keeps the writer from opening waves and from beginning rollouts, until ResumeRollouts.
func PauseRollouts(ctx context.Context, o Options, target string, d Decision) error {
	return onTarget(ctx, o, target, func(c *client, k keys, _ *Head) error {
		given, err := c.orders(ctx, k)
		if err != nil {
			return err
		}
		if was := given[pauseOrder]; was != nil {
			return &DecidedError{"rollouts are paused already " + was.String()}
		}
		o := Order{By: d.By, Reason: d.Reason}
		if err := c.give(ctx, k, pauseOrder, o); err != nil {
			return err
		}
		return c.untilShown(ctx, k, o.pause(), true)
	})
}

// ResumeRollouts ends a pause. Without a pause, ResumeRollouts begins a rollout again that was taken back.
func ResumeRollouts(ctx context.Context, o Options, target string, d Decision) error {
	return onTarget(ctx, o, target, func(c *client, k keys, h *Head) error {
		given, err := c.orders(ctx, k)
		if err != nil {
			return err
		}
		switch {
		case given[pauseOrder] != nil:
			if _, _, err = c.commit(ctx, nil, clientv3.OpDelete(k.orders()+pauseOrder)); err != nil {
				return err
			}
			return c.untilShown(ctx, k, given[pauseOrder].pause(), false)
		case h.Rollout == nil || h.running() != nil:
			return &DecidedError{"nothing to resume: rollouts are not paused, and none was taken back"}
		}
		return c.order(ctx, k, retryOrder, Order{By: d.By, Reason: d.Reason, Candidate: h.Rollout.Candidate.Step.Serial}, func(is *Head) bool {
			return is.Rollout == nil || is.running() != nil
		})
	})
}

// AbortRollout has the writer take the candidate back.
func AbortRollout(ctx context.Context, o Options, target string, d Decision) error {
	return onTarget(ctx, o, target, func(c *client, k keys, h *Head) error {
		r := h.running()
		if r == nil {
			return &DecidedError{"no rollout runs"}
		}
		return c.order(ctx, k, abortOrder, Order{By: d.By, Reason: d.Reason, Candidate: r.Candidate.Step.Serial}, func(is *Head) bool {
			return is.running() == nil || is.running().Candidate.Step.Serial != r.Candidate.Step.Serial
		})
	})
}

// untilShown waits until the writer of a running rollout shows that it has noticed a pause or its end, but not longer
// than noticeTime.
func (c *client) untilShown(ctx context.Context, k keys, reason string, shown bool) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	for {
		kv, _, err := c.get(ctx, k.writer())
		if ctx.Err() != nil || err == nil && kv == nil {
			return nil // no writer looks
		}
		if err != nil {
			return err
		}
		if r := termIn(kv).Rollout; r == nil || (r.Message == reason) == shown {
			return nil
		}
		rest(ctx, askAgain)
	}
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// order writes an order, and waits until the writer has done it.
func (c *client) order(ctx context.Context, k keys, kind string, o Order, done func(*Head) bool) error {
	if err := c.give(ctx, k, kind, o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	for {
		head, _, _, err := reader{client: c, keys: k}.head(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("the writer has not executed the order within %s: the order stays in %s%s, and the next writer executes it",
				orderTime, k.orders(), kind)
		case err != nil:
			return err
		case head == nil:
			return &NoTargetError{Key: k.head()}
		case done(head):
			return nil
		}
		rest(ctx, askAgain)
	}
}

// onTarget calls do with the head of a target.
func onTarget(ctx context.Context, o Options, target string, do func(*client, keys, *Head) error) error {
	c, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer c.close()
	k := o.Address.keys(target)
	head, _, _, err := reader{client: c, keys: k}.head(ctx)
	if err == nil && head == nil {
		err = c.noHead(ctx, o.Address, k)
	}
	if err == nil {
		err = do(c, k, head)
	}
	if _, decided := errors.AsType[*DecidedError](err); decided {
		return err
	}
	return c.explained(err)
}
