package sdnotify

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/watch/control"
)

// An Example runs a Notifier that talks to a socket, as systemd binds one.
func Example() {
	dir, err := os.MkdirTemp("", "sdnotify")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()
	os.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	defer os.Unsetenv("NOTIFY_SOCKET")

	n := New(Options{Targets: 1, Patience: time.Minute})
	n.Open()
	n.Tell("", control.Watch{Snapshot: "v1", Acknowledged: true})
	n.Beat("")
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); n.Run(ctx, nil) }()
	text := make([]byte, 1000)
	size, err := manager.Read(text)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text[:size]))
	end()
	<-ended
	// Output:
	// READY=1
	// STATUS=published snapshot v1
}

// manager is a socket as systemd binds one.
type manager struct {
	t *testing.T
	*net.UnixConn
}

func newManager(t *testing.T) manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "sdnotify") // a short path
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); os.RemoveAll(dir) })
	t.Setenv("NOTIFY_SOCKET", c.LocalAddr().String())
	return manager{t, c}
}

// next returns the next notification that is not WATCHDOG=1 alone, in one line.
func (m manager) next() string {
	m.t.Helper()
	text := make([]byte, 4096)
	for {
		if err := m.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			m.t.Fatal(err)
		}
		n, err := m.Read(text)
		if err != nil {
			m.t.Fatal(err)
		}
		if got := strings.ReplaceAll(string(text[:n]), "\n", " "); got != "WATCHDOG=1" {
			return strings.TrimSuffix(got, " WATCHDOG=1")
		}
	}
}

func (m manager) wants(pattern string) {
	m.t.Helper()
	if got := m.next(); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
		m.t.Errorf("%q, want %q", got, pattern)
	}
}

func (m manager) run(n *Notifier) (end func()) {
	ctx, cancel := context.WithCancel(m.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.Run(ctx, nil) }()
	return func() { cancel(); <-ended }
}

// TestStates checks the notifications of two targets that start, reload, fail and stop.
func TestStates(t *testing.T) {
	m := newManager(t)
	n := New(Options{Targets: 2, Patience: time.Hour})
	end := m.run(n)
	n.Open()
	m.wants("STATUS=the source tree is not read yet")
	good := control.Watch{Snapshot: "v1", Acknowledged: true, Revision: "abc"}
	n.Tell("a", good)
	m.wants("STATUS=target a: published snapshot v1 of commit abc")
	n.Beat("a")
	n.Tell("b", control.Watch{})
	m.wants("STATUS=target a: published snapshot v1 of commit abc; target b: nothing is published; the snapshot is not acknowledged yet|" +
		"STATUS=target a: published snapshot v1 of commit abc; target b: nothing is published")
	n.Beat("b") // its first pass has ended, although nothing is published
	m.wants("READY=1")

	pass := func(reason string) *control.Reconcile { return &control.Reconcile{Reason: reason, Began: time.Now()} }
	running := pass("SIGHUP") // of an earlier SIGHUP
	n.Tell("a", control.Watch{Snapshot: "v1", Acknowledged: true, Revision: "abc", Running: running})
	n.Reload()
	m.wants(`RELOADING=1 MONOTONIC_USEC=\d+`)
	after := func(name string, last *control.Reconcile) {
		w := good
		w.Last = last
		n.Tell(name, w)
	}
	after("b", pass("change"))
	m.wants("STATUS=target a: .*; target b: published snapshot v1 of commit abc")
	after("b", pass("SIGHUP"))
	after("a", running)
	n.Tell("c", good)
	m.wants("STATUS=.*target c: .*")
	after("a", pass("SIGHUP"))
	m.wants("READY=1")

	// A removed target does not hold up a reload.
	n.Reload()
	m.wants(`RELOADING=1 MONOTONIC_USEC=\d+`)
	n.Removed("b")
	n.Removed("c")
	m.wants("STATUS=target a: published snapshot v1 of commit abc")
	after("a", pass("SIGHUP"))
	m.wants("READY=1")
	end()
	m.wants("STOPPING=1 STATUS=stopping")
}

// TestServes checks that a server is ready when its addresses are open.
func TestServes(t *testing.T) {
	m := newManager(t)
	n := New(Options{Targets: 1, Serves: true, Patience: time.Hour})
	defer m.run(n)()
	n.Open()
	m.wants("READY=1 STATUS=the source tree is not read yet")
}

// TestWatchdog checks that WATCHDOG=1 comes while the loops make progress, and stops when one hangs.
func TestWatchdog(t *testing.T) {
	now := time.Now()
	n := &Notifier{options: Options{Patience: time.Minute}, began: now, changed: make(chan struct{}, 1), targets: make(map[string]*target)}
	late := func() bool { return n.alive(time.Now().Add(2 * time.Minute)) }
	if !n.alive(now) || late() {
		t.Error("before the first state")
	}
	n.Tell("a", control.Watch{})
	n.Tell("b", control.Watch{})
	if !n.alive(time.Now()) || late() {
		t.Error("two targets")
	}
	for name, progress := range map[string]func(){
		"a beat":   func() { n.Beat("a") },
		"a state":  func() { n.Tell("a", control.Watch{}) },
		"an event": func() { n.Event(event.Record{Target: "a", Event: event.StepPublished{}}) },
	} {
		n.targets["a"].progress = time.Now().Add(-2 * time.Minute)
		if n.alive(time.Now()) {
			t.Errorf("%s: a loop that hangs is alive", name)
		}
		if progress(); !n.alive(time.Now()) {
			t.Errorf("after %s a loop is not alive", name)
		}
	}
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	defer m.run(n)()
	text := make([]byte, 4096)
	beats := 0
	for beats < 5 {
		size, err := m.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text[:size]), "WATCHDOG=1") {
			beats++
		}
	}
}

// TestNone checks that without systemd there is no Notifier, and that a nil Notifier does nothing.
func TestNone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n := New(Options{})
	if n != nil {
		t.Fatal("a Notifier without a socket")
	}
	n.Open()
	n.Reload()
	n.Beat("")
	n.Run(t.Context(), nil)
}

// TestUnreachable checks that a socket that takes no notification is logged once, that its return is logged once, and
// that systemd then gets the state that it missed.
func TestUnreachable(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	path := m.LocalAddr().String()
	written := make(chan event.Event, 10)
	log := event.New(slog.DiscardHandler, func(r event.Record) { written <- r.Event })
	n := New(Options{Targets: 1, Patience: time.Hour})
	n.Open()
	n.Tell("", control.Watch{Snapshot: "v1", Acknowledged: true})
	n.Beat("")
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.Run(ctx, log) }()
	m.wants("READY=1 STATUS=published snapshot v1")

	m.Close()
	if e, ok := (<-written).(event.SystemdUnreachable); !ok || e.Error == nil || e.Socket != path {
		t.Errorf("a closed socket: %+v", e)
	}
	n.Tell("", control.Watch{Snapshot: "v2", Acknowledged: true})
	os.Remove(path)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if e, ok := (<-written).(event.SystemdReachable); !ok {
		t.Errorf("the socket is back: %#v", e)
	}
	manager{t, c}.wants("READY=1 STATUS=published snapshot v2")
	end()
	<-ended
	if len(written) > 0 {
		t.Errorf("another event: %#v", <-written)
	}
}
