// Package hook passes events to programs and to web servers of the user: --on-event and --webhook. Each hook has a
// bounded queue and one goroutine, so a slow hook holds up neither the log nor another hook.
//
//	command, err := hook.ParseCommand("published=/usr/local/bin/notify --channel ops")
//	hooks := hook.New(hook.Options{Commands: []hook.Command{command}})
//	log := event.New(handler, hooks.Event)
//	hooks.Start(log)
//	defer hooks.Close()
package hook

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
)

// maxEventSize is the largest size of an event in bytes of JSON. A longer event has the key omitted_bytes in place of
// its keys.
const maxEventSize = 64 << 10

// Options configure Hooks.
type Options struct {
	Commands []Command
	Webhooks []Webhook
	// Secret is the file with the key of the signature; empty for no signature.
	Secret string
	// CA is a file of certificates in PEM that webhooks accept besides the CAs of the system; empty for none.
	CA string
	// Version is the version of the program.
	Version string
	Times   Times
}

// Check returns an error if a file of the options can't be read.
func (o Options) Check() error {
	if o.Secret != "" {
		if _, err := sign(o.Secret, nil); err != nil {
			return err
		}
	}
	return (&client{ca: o.CA}).useCA()
}

// Times are the bounds of time. A zero field means the default.
type Times struct {
	// Timeout bounds a run of a program and a request of a webhook: 10 s.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL for a program that has not ended in time: 1 s.
	Grace time.Duration
	// Exit bounds Close: 3 s.
	Exit time.Duration
	// LeastBackoff and MostBackoff bound the pause before an event is sent again: 1 s and 1 min.
	LeastBackoff, MostBackoff time.Duration
	// GiveUp is the time after which an event is not sent again: 15 min.
	GiveUp time.Duration
	// Report is the least time between two events about the failures of one hook: 1 min.
	Report time.Duration
}

// withDefaults returns the Times without zero fields.
func (t Times) withDefaults() Times {
	return Times{
		Timeout: cmp.Or(t.Timeout, 10*time.Second), Grace: cmp.Or(t.Grace, time.Second), Exit: cmp.Or(t.Exit, 3*time.Second),
		LeastBackoff: cmp.Or(t.LeastBackoff, time.Second), MostBackoff: cmp.Or(t.MostBackoff, time.Minute),
		GiveUp: cmp.Or(t.GiveUp, 15*time.Minute), Report: cmp.Or(t.Report, time.Minute),
	}
}

// Hooks are the hooks of a process. The methods of nil Hooks do nothing.
type Hooks struct {
	times   Times
	workers []*worker
	prefix  string // begins the ids of the events of this process
	last    atomic.Uint64

	log     *event.Log         // nil before Start
	cancel  context.CancelFunc // nil before Start
	closing chan struct{}      // closed by Close
	running sync.WaitGroup
}

// New returns Hooks; nil if the options have no hook.
func New(o Options) *Hooks {
	if len(o.Commands)+len(o.Webhooks) == 0 {
		return nil
	}
	h := &Hooks{times: o.Times.withDefaults(), prefix: rand.Text()[:12] + "-", closing: make(chan struct{})}
	host := hostname()
	for _, c := range o.Commands {
		h.add(c.selection, &program{Command: c, times: h.times})
	}
	for _, w := range o.Webhooks {
		h.add(w.selection, &client{Webhook: w, times: h.times, secret: o.Secret, ca: o.CA, agent: "xdspub/" + o.Version, host: host})
	}
	return h
}

// hostname returns the name of this machine as a header can have it; empty without a name.
func hostname() string {
	name, _ := os.Hostname()
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, name)
}

func (h *Hooks) add(of selection, to receiver) {
	h.workers = append(h.workers, &worker{
		selection: of, receiver: to, queue: queue{more: make(chan struct{}, 1)}, times: h.times, closing: h.closing,
	})
}

// Event takes an event of the log. Event drops the events that package hook writes, because a failing hook would
// otherwise cause events without end.
func (h *Hooks) Event(r event.Record) {
	if h == nil {
		return
	}
	kind := event.KindOf(r.Event)
	if isOwn(kind.Name) {
		return
	}
	var line []byte
	for _, w := range h.workers {
		if !w.takes(kind) {
			continue
		}
		if line == nil {
			var err error
			if line, err = r.JSON(maxEventSize); err != nil {
				return
			}
		}
		w.queue.add(item{h.prefix + strconv.FormatUint(h.last.Add(1), 10), kind.Name, line})
	}
}

// Start starts the hooks, which write their failures to the log. Events before Start wait in the queues.
func (h *Hooks) Start(log *event.Log) {
	if h == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.log, h.cancel = log, cancel
	for _, w := range h.workers {
		w.log = log
		h.running.Go(crash.Again(ctx.Done(), func() { w.run(ctx) }, log.Crashed))
	}
}

// Close tries to pass on the queued events within Times.Exit, and ends the hooks. Close ends a backoff at once, and an
// event that then fails is not sent again. Close does not wait for a hook that a hanging file system holds up.
func (h *Hooks) Close() {
	if h == nil || h.cancel == nil {
		return
	}
	close(h.closing)
	ended := make(chan struct{})
	go crash.Guard(func() {
		defer close(ended)
		h.running.Wait()
	}, h.log.Crashed)()
	select {
	case <-ended:
	case <-time.After(h.times.Exit):
		h.cancel()
		select {
		case <-ended:
		case <-time.After(2 * h.times.Grace):
		}
	}
	h.cancel()
	h.cancel = nil
}
