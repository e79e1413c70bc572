package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"xdspub/diag"
	"xdspub/xds/clients"
)

// newOut returns an output directory that a watch could have locked.
func newOut(t *testing.T) string {
	t.Helper()
	// Not t.TempDir: with the name of the test, the path of the socket may get too long.
	out, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(out) })
	if err := os.Mkdir(filepath.Join(out, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	return out
}

// serve returns a Server that is bound in the directory out until the test ends.
func serve(t *testing.T, out string) *Server {
	t.Helper()
	s := New(nil)
	t.Cleanup(s.Close)
	mustBind(t, s, out)
	return s
}

func mustBind(t *testing.T, s *Server, out string) {
	t.Helper()
	if err := s.Bind(out); err != nil {
		t.Fatal(err)
	}
}

// loop answers requests as a watch does, until the test ends.
func loop(t *testing.T, s *Server, answer func(*Request)) {
	t.Helper()
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case r := <-s.Requests():
				answer(r)
			case <-end:
				return
			}
		}
	})
	t.Cleanup(func() { close(end); running.Wait() })
}

func published(r *Request) { r.Answer(Result{Outcome: Published, Message: "done"}) }

// answers returns the answer of Ask for the directory out, and fails the test if there is none.
func answers(t *testing.T, out string) Watch {
	t.Helper()
	w, err := Ask(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// soonAnswers asks until a watch answers. A watch may close the connection of a client that is slow because the
// machine is busy.
func soonAnswers(t *testing.T, ask func() error) {
	t.Helper()
	var err error
	for late := time.Now().Add(2 * time.Minute); time.Now().Before(late); {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func isErr(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one with %q", err, text)
	}
}

func TestAsk(t *testing.T) {
	out := newOut(t)
	s := serve(t, out)
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, want := range []Watch{
		{PID: 12, Source: "/src", Out: out, Since: at, Running: &Reconcile{Reason: "start", Began: at}},
		{
			PID: 12, Source: "/src", Out: out, Since: at, Snapshot: "v1", Failed: "open x: too bad", NextTrim: at,
			Refused: &Refusal{Since: at, Snapshot: "v2", Message: "refused", Findings: diag.List{{Code: "x", Severity: diag.Warning, Position: diag.Position{File: "a", Line: 1}, End: diag.End{EndLine: 1}, Message: "<&>", Related: []diag.Related{}, Fixes: []diag.Fix{}}}},
			Last:    &Reconcile{Reason: "change", Began: at, Ended: at, Outcome: Refused},
		},
	} {
		s.Tell(want)
		if diff := cmp.Diff(want, answers(t, out), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestRetry(t *testing.T) {
	out := newOut(t)
	s := serve(t, out)
	want := RetryHeld{Source: "/src", Flags: map[string][]string{"format": {"json"}, "disable": {"a", "b"}}}
	result := Result{Outcome: Refused, Snapshot: "v1", Message: "no", Findings: diag.List{{Code: "x", Message: "y", Related: []diag.Related{}, Fixes: []diag.Fix{}}}}
	loop(t, s, func(r *Request) {
		switch {
		case r.Asked.(RetryHeld).Source == "/other":
			r.Conflict("its source tree is /src")
		case cmp.Equal(want, r.Asked):
			r.Answer(result)
		default:
			t.Errorf("asked for %+v", r.Asked)
			published(r)
		}
	})
	got, err := Retry(t.Context(), out, want)
	if diff := cmp.Diff(result, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	_, err = Retry(t.Context(), out, RetryHeld{Source: "/other"})
	if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Reason != "its source tree is /src" {
		t.Errorf("a conflict became %v", err)
	}
}

// TestDecide sends the decisions of an operator.
func TestDecide(t *testing.T) {
	out := newOut(t)
	s := serve(t, out)
	loop(t, s, func(r *Request) {
		switch asked := r.Asked.(type) {
		case Pause:
			r.Answer(Result{Outcome: Paused, Message: fmt.Sprint(asked)})
		case Resume:
			r.Conflict("not now, " + asked.By)
		}
	})
	got, err := AskPause(t.Context(), out, Pause{By: "a@b", Reason: "x", For: 1.5, Replace: true})
	if err != nil || got.Outcome != Paused || got.Message != "{a@b x 1.5 true}" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = AskResume(t.Context(), out, Resume{By: "a@b"})
	if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Reason != "not now, a@b" {
		t.Errorf("%v", err)
	}
}

// TestForget checks that Forget removes only sockets, and that another file at the path doesn't prevent
// publishing.
func TestForget(t *testing.T) {
	out := newOut(t)
	forget := func(left bool) {
		t.Helper()
		if err := Forget(out); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(Path(out)); (err == nil) != left {
			t.Errorf("left there: %v", err)
		}
	}
	forget(false)
	leftover(t, out)
	forget(false)
	if err := os.MkdirAll(filepath.Join(Path(out), "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	forget(true)
}

// TestNoWatch asks in directories without a listener, and with a listener that is not a watch.
func TestNoWatch(t *testing.T) {
	out := newOut(t)
	_, err := Ask(t.Context(), filepath.Join(out, "missing"))
	if !errors.Is(err, ErrNoWatch) {
		t.Error(err)
	}
	_, err = Ask(t.Context(), out)
	if !errors.Is(err, ErrNoWatch) {
		t.Error(err)
	}
	leftover(t, out)
	_, err = Ask(t.Context(), out)
	if !errors.Is(err, ErrNoWatch) || !errors.Is(err, ErrDied) {
		t.Error(err)
	}
	if err := os.Remove(Path(out)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ says, want string }{
		{"", "ended before it answered"},
		{"what?\r\n\r\n", "malformed HTTP"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwhat", "invalid character 'w'"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "ended before it answered"},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nno such x\n", "404 Not Found: no such x"},
		{"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "307"},
	} {
		ended := stranger(t, out, c.says)
		_, err := Ask(t.Context(), out)
		ended()
		isErr(t, err, c.want)
		isErr(t, err, Path(out))
	}
}

// stranger answers the next client of the directory out with says. The returned function waits until the
// answer is sent and the socket is removed.
func stranger(t *testing.T, out, says string) (ended func()) {
	t.Helper()
	l, err := net.Listen("unix", Path(out))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		defer l.Close()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, says)
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return running.Wait
}

// leftover leaves a socket, as a killed watch does.
func leftover(t *testing.T, out string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: Path(out)})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestBind(t *testing.T) {
	t.Run("leftover", func(t *testing.T) {
		out := newOut(t)
		leftover(t, out)
		if err := os.WriteFile(filepath.Join(out, folder, unlisted), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s := serve(t, out)
		answers(t, out)
		info, err := os.Lstat(Path(out))
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		s2 := New(nil) // of a watch that has taken the lock
		mustBind(t, s2, out)
		s2.Tell(Watch{PID: 2})
		s.Unbind()
		if w := answers(t, out); w.PID != 2 {
			t.Error("the socket of another was removed")
		}
		s2.Unbind()
		entries, err := os.ReadDir(filepath.Join(out, folder))
		if err != nil || len(entries) > 0 {
			t.Errorf("left over: %v %v", entries, err)
		}
		s2.Close()
	})
	t.Run("ended", func(t *testing.T) {
		out, s := newOut(t), New(nil)
		mustBind(t, s, out)
		before := time.Now().Add(-time.Second) // times of files are coarse
		s.Close()
		var at *EndedError
		if _, err := Ask(t.Context(), out); !errors.As(err, &at) || !errors.Is(err, ErrNoWatch) || at.Time.Before(before) {
			t.Errorf("after the end: %v", err)
		}
		next := New(nil)
		mustBind(t, next, out)
		answers(t, out)
		next.Unbind() // as if the directory were lost
		if _, err := Ask(t.Context(), out); errors.As(err, &at) || !errors.Is(err, ErrNoWatch) {
			t.Errorf("after a watch that has not ended: %v", err)
		}
		mustBind(t, next, out)
		next.Close()
		if err := Forget(out); err != nil {
			t.Fatal(err)
		}
		if _, err := Ask(t.Context(), out); errors.As(err, &at) || !errors.Is(err, ErrNoWatch) {
			t.Errorf("after somebody else has published: %v", err)
		}
	})
	t.Run("again", func(t *testing.T) {
		out := newOut(t)
		s := serve(t, out)
		before := s.bound
		mustBind(t, s, out)
		if s.bound != before {
			t.Error("a socket that stands was made again")
		}
		for _, take := range []string{Path(out), filepath.Join(out, folder)} {
			if err := os.RemoveAll(take); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(out, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			mustBind(t, s, out)
			answers(t, out)
		}
		s.bound.UnixListener.Close() // as if accepting failed for good
		<-s.bound.ended
		mustBind(t, s, out)
		answers(t, out)
	})
	t.Run("long path", func(t *testing.T) {
		if maxPath < 107 {
			t.Skip("this system has no way to a socket of a long path")
		}
		out := newOut(t)
		for len(out) < 300 {
			out = filepath.Join(out, strings.Repeat("x", 60))
		}
		if err := os.MkdirAll(filepath.Join(out, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		s := serve(t, out)
		loop(t, s, published)
		answers(t, out)
		if _, err := Retry(t.Context(), out, RetryHeld{}); err != nil {
			t.Error(err)
		}
		s.Unbind()
		_, err := Ask(t.Context(), out)
		if !errors.Is(err, ErrNoWatch) {
			t.Error(err)
		}
	})
	t.Run("impossible", func(t *testing.T) {
		out := newOut(t)
		s := serve(t, out)
		isErr(t, s.Bind(filepath.Join(out, "missing")), "missing/.xdspub: no such file")
		if err := os.MkdirAll(filepath.Join(Path(out), "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		isErr(t, s.Bind(out), Path(out)+": ")
		if err := os.RemoveAll(Path(out)); err != nil {
			t.Fatal(err)
		}
		mustBind(t, s, out)
		answers(t, out)
	})
}

// raw sends text and returns all that comes back until the connection is closed.
func raw(t *testing.T, out, text string) string {
	t.Helper()
	conn := connect(t, out)
	_, _ = io.WriteString(conn, text) // the server may have closed the connection
	if err := conn.SetReadDeadline(time.Now().Add(4 * patience)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		return err.Error()
	}
	return string(answer)
}

func connect(t *testing.T, out string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", Path(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func post(body string) string { return postTo(retryPath, body) }

func postTo(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func TestGarbage(t *testing.T) {
	out := newOut(t)
	s := serve(t, out)
	loop(t, s, published)
	for _, c := range []struct{ name, says, want string }{
		{"bytes", "\x00\xff\x16\x03\x01\r\n\r\n", "400 Bad Request"},
		{"another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 Bad Request"},
		{"a header without an end", "GET /v1/watch HTTP/1.1\r\nX: " + strings.Repeat("x", 2*maxHeader), "431 Request Header Fields Too Large"},
		{"another path", "GET /v2/watch HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found"},
		{"another method", "GET /v1/retry-held HTTP/1.1\r\nHost: x\r\n\r\n", "405 Method Not Allowed"},
		{"no JSON", post("what"), "400 Bad Request"},
		{"two of JSON", post("{}{}"), "more than one JSON value"},
		{"another type", post(`{"source": 1}`), "400 Bad Request"},
		{"a field of a later version", post(`{"force": true}`), "unknown field"},
		{"too much", post(`{"source": "` + strings.Repeat("x", maxRequest) + `"}`), "request body too large"},
		{"a pause with another field", postTo(pausePath, `{"by": "a@b", "until": "ever"}`), "unknown field"},
		{"a pause of another type", postTo(pausePath, `{"by": "a@b", "for_seconds": "1h"}`), "400 Bad Request"},
		{"a resume with a field of pause", postTo(resumePath, `{"by": "a@b", "for_seconds": 1}`), "unknown field"},
		{"a pause", postTo(pausePath, `{"by": "a@b", "reason": "x", "for_seconds": 1.5}`), `"outcome": "published"`},
		{"nothing asked for", post(""), `"outcome": "published"`},
		{"any watch", post("{}"), `"outcome": "published"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := raw(t, out, c.says); !strings.Contains(got, c.want) {
				t.Errorf("answered %q, want %q", got, c.want)
			}
			answers(t, out)
		})
	}
}

// TestHang connects more clients than maxConnections. They send nothing, send a part of a request, or don't
// read the answer.
func TestHang(t *testing.T) {
	out := newOut(t)
	s := New(nil)
	s.http.ReadTimeout = patience / 50
	t.Cleanup(s.Close)
	mustBind(t, s, out)
	s.Tell(Watch{PID: 7, Failed: strings.Repeat("x", 1<<20)}) // more than the buffers of a socket
	says := []string{"", "GET /v1/wat", "GET /v1/watch HTTP/1.1\r\nHost: x\r\n", post(`{"source": "x"}`)[:60]}
	for i := range 2 * maxConnections {
		_, _ = io.WriteString(connect(t, out), says[i%len(says)])
	}
	if _, err := io.WriteString(connect(t, out), "GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	soonAnswers(t, func() error {
		w, err := Ask(t.Context(), out)
		if err == nil && w.PID != 7 {
			t.Error("answered by another")
		}
		return err
	})
}

// TestSlowClients sends a request after hundreds of slow ones. The request is answered while most slow
// connections are still open. A client that waits for the watch keeps its connection.
func TestSlowClients(t *testing.T) {
	out := newOut(t)
	s := New(nil)
	s.http.ReadTimeout = time.Hour // no connection ends by this timeout
	t.Cleanup(s.Close)
	mustBind(t, s, out)
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := Retry(context.Background(), out, RetryHeld{}); err != nil {
			t.Error(err)
		}
	})
	waiting := <-s.Requests()
	var slow []net.Conn
	for range 300 {
		conn := connect(t, out)
		_, _ = io.WriteString(conn, "GET /v1/wat")
		slow = append(slow, conn)
	}
	soonAnswers(t, func() error {
		_, err := Ask(t.Context(), out)
		return err
	})
	connected := 0
	for _, conn := range slow {
		if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			connected++
		}
	}
	if connected == 0 {
		t.Error("the honest client waited until the slow ones were gone")
	}
	published(waiting)
	asking.Wait()
}

// TestFlood sends more requests than maxWaiting. Each request is executed and answered, or refused.
func TestFlood(t *testing.T) {
	const clients = 200
	out := newOut(t)
	s := serve(t, out)
	var done atomic.Int64
	began, turn := make(chan struct{}, clients), make(chan struct{})
	loop(t, s, func(r *Request) {
		began <- struct{}{}
		<-turn // a reconcile may take any time
		done.Add(1)
		published(r)
	})
	var asking sync.WaitGroup
	results := make(chan error, clients)
	ask := func() {
		_, err := Retry(context.Background(), out, RetryHeld{})
		results <- err
	}
	asking.Go(ask)
	<-began
	for range clients - 1 {
		asking.Go(ask)
	}
	for range clients - maxWaiting - 1 { // this many are refused at once
		isErr(t, <-results, "requests are waiting already")
	}
	answers(t, out)
	close(turn)
	asking.Wait()
	for range maxWaiting + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := done.Load(); n != maxWaiting+1 {
		t.Errorf("%d were carried out, %d were answered", n, maxWaiting+1)
	}
	answers(t, out)
}

// TestGone sends a request whose client leaves before its turn.
func TestGone(t *testing.T) {
	out := newOut(t)
	s := serve(t, out)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		_, err := Retry(ctx, out, RetryHeld{})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	r := <-s.Requests()
	if r.Gone() {
		t.Error("gone while it waits")
	}
	cancel()
	asking.Wait()
	<-r.ctx.Done() // the server has noticed
	if !r.Gone() {
		t.Error("it still waits")
	}
	published(r) // nobody receives this answer
	answers(t, out)
}

// TestLongPass checks that a client may wait for an answer longer than a client may take to ask.
func TestLongPass(t *testing.T) {
	out := newOut(t)
	s := New(nil)
	s.http.ReadTimeout = patience / 50
	t.Cleanup(s.Close)
	mustBind(t, s, out)
	loop(t, s, func(r *Request) {
		_, _ = connect(t, out).Read(make([]byte, 1)) // a silent client loses its connection
		if r.Gone() {
			t.Error("the client was taken for gone")
		}
		published(r)
	})
	soonAnswers(t, func() error {
		_, err := Retry(t.Context(), out, RetryHeld{})
		return err
	})
}

// TestClose ends a watch with waiting clients: one request is running, others have not begun.
func TestClose(t *testing.T) {
	out := newOut(t)
	s := New(nil)
	mustBind(t, s, out)
	hanging := connect(t, out)
	var asking sync.WaitGroup
	errs := make(chan error, 2)
	ask := func() {
		_, err := Retry(context.Background(), out, RetryHeld{})
		errs <- err
	}
	asking.Go(ask)
	first := <-s.Requests()
	asking.Go(ask)
	<-s.Requests()
	published(first)
	if err := <-errs; err != nil {
		t.Error(err)
	}
	s.Close()
	isErr(t, <-errs, "503 Service Unavailable: the watch has ended")
	asking.Wait()
	if _, err := hanging.Read(make([]byte, 1)); err == nil {
		t.Error("a hanging client is still connected")
	}
	_, err := Ask(t.Context(), out)
	if !errors.Is(err, ErrNoWatch) {
		t.Error(err)
	}
}

// TestSilence asks a process that was stopped.
func TestSilence(t *testing.T) {
	out := newOut(t)
	l, err := net.Listen("unix", Path(out))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience/50)
	defer cancel()
	_, err = Ask(ctx, out)
	isErr(t, err, "no answer within")
}

// TestClients checks that the Server calls the function of TellClients for each request.
func TestClients(t *testing.T) {
	out := newOut(t)
	s := New(nil)
	t.Cleanup(s.Close)
	asked := 0
	s.TellClients(func() []clients.Client {
		asked++
		return []clients.Client{{Node: fmt.Sprint("edge-", asked), Subscriptions: []clients.Subscription{{Sync: clients.Stale, API: "CDS", Names: []string{}}}}}
	})
	mustBind(t, s, out)
	for i := range 2 {
		list, err := Clients(t.Context(), out)
		if err != nil || len(list) != 1 || list[0].Node != fmt.Sprint("edge-", i+1) || list[0].Count(clients.Stale) != 1 {
			t.Error(list, err)
		}
	}
	other := newOut(t)
	serve(t, other)
	if list, err := Clients(t.Context(), other); err != nil || list == nil || len(list) > 0 {
		t.Error(list, err)
	}
	if _, err := Clients(t.Context(), newOut(t)); !errors.Is(err, ErrNoWatch) {
		t.Error(err)
	}
}

// TestFault: a source that is gone, or that can't be used, is a fault, by the name of its kind.
func TestFault(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		is   *Upstream
		want string
	}{
		{nil, ""},
		{&Upstream{Kind: "store", Connected: true, Since: at}, ""},
		{&Upstream{Kind: "store", Connected: true, Since: at, Error: "its hash is wrong", StaleSince: at}, "the store can't be used since 2026-01-02T03:04:05Z: its hash is wrong"},
		{&Upstream{Kind: "store", Since: at, Error: "no server answers"}, "the store is gone since 2026-01-02T03:04:05Z: no server answers"},
		{&Upstream{Kind: "control plane", Since: at}, "the control plane is gone since 2026-01-02T03:04:05Z"},
	} {
		if got := c.is.Fault(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.is, got, c.want)
		}
	}
}

// TestStale: a watch is not ready once it does not follow its source for longer than --max-stale.
func TestStale(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		is   *Upstream
		want bool
	}{
		{nil, false},
		{&Upstream{Connected: true, MaxStale: 60}, false},
		{&Upstream{StaleSince: at}, false},
		{&Upstream{Connected: true, StaleSince: at, MaxStale: 60}, true},
		{&Upstream{StaleSince: at, MaxStale: 60}, true},
		{&Upstream{StaleSince: at, MaxStale: 61}, false},
	} {
		if got := c.is.Stale(at.Add(time.Minute)); got != c.want {
			t.Errorf("%+v: %t", c.is, got)
		}
	}
}

// TestStore: the status of a writer names its store, and why the published snapshot is not there.
func TestStore(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		is          Store
		fault, text string
	}{
		{Store{}, "", "etcd://a:1/b: has nothing of this watch yet"},
		{Store{Writes: true, Snapshot: "v1"}, "", "etcd://a:1/b: has snapshot v1"},
		{Store{Writer: "bob@host", Snapshot: "v1"}, "", "etcd://a:1/b: bob@host is the writer; this watch waits until that writer ends"},
		{Store{Since: at, Snapshot: "v1", Error: "no server answers"}, "the store can't be written since 2026-01-02T03:04:05Z: no server answers",
			"etcd://a:1/b: the store can't be written since 2026-01-02T03:04:05Z: no server answers"},
	} {
		c.is.Address = "etcd://a:1/b"
		if fault, text := c.is.Fault(), c.is.String(); fault != c.fault || text != c.text {
			t.Errorf("%+v: %q, %q", c.is, fault, text)
		}
	}
	if fault := (*Store)(nil).Fault(); fault != "" {
		t.Error(fault)
	}
}
