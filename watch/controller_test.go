package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/check"
	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/watch/pipeline"
)

const (
	web   = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: web\n"
	other = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: other\n"
	wrong = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: web\nlb_policy: NONE\n"
)

// site is a source file and the options to publish it with.
type site struct {
	t *testing.T
	o Options
}

func newSite(t *testing.T, text string) *site {
	dir := t.TempDir()
	s := &site{t, Options{Options: pipeline.Options{
		Source: check.Options{Path: filepath.Join(dir, "src")}, Out: filepath.Join(dir, "out"), Endpoints: planner.EndpointsAuto, InotifyBudget: 100,
	}}}
	if err := os.Mkdir(s.o.Source.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(text)
	return s
}

func (s *site) write(text string) {
	s.t.Helper()
	file := filepath.Join(filepath.Dir(s.o.Source.Path), "new")
	err := os.WriteFile(file, []byte(text), 0o644)
	if err == nil {
		err = os.Rename(file, filepath.Join(s.o.Source.Path, "web.yaml"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// pass runs a reconcile by c, which must be open.
func (s *site) pass(c *Controller) Outcome {
	s.t.Helper()
	ctx := context.Background()
	checked, err := Tree([]Options{s.o}).Check(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Prepare(ctx); err != nil {
		s.t.Fatal(err)
	}
	plan, err := c.Plan(ctx, checked)
	if err != nil {
		s.t.Fatal(err)
	}
	o, err := c.Publish(ctx, checked, plan)
	if err != nil {
		s.t.Fatal(err)
	}
	c.Record(ctx, checked, o)
	return o
}

// TestPasses checks the outcomes of reconciles of a changing tree.
func TestPasses(t *testing.T) {
	s := newSite(t, web)
	s.o.WarningsAsErrors = true
	c := New(s.o)
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := ""
	for _, step := range []struct {
		name, text string
		want       Verdict
		written    int
	}{
		{"the first", web, Published, 2},
		{"the same", web, Published, 0},
		{"an error", wrong, Invalid, 0},
		{"a change", other, Published, 1},
		{"the first again", web, Published, 0}, // the file has both clusters: a retired cluster stays for the trim delay
	} {
		s.write(step.text)
		o := s.pass(c)
		if written, _ := Files(o.Moved); o.Verdict != step.want || written != step.written {
			t.Errorf("%s: %s; want %s with %d files written", step.name, o.Message(), step.want, step.written)
		}
		if first == "" {
			first = o.Snapshot
		}
	}
	if c.SnapshotID() != first {
		t.Errorf("%s is out, want %s: the same source has the same snapshot", c.SnapshotID(), first)
	}
}

// TestOneAtATime checks that two Controllers can't open the same directory.
func TestOneAtATime(t *testing.T) {
	s := newSite(t, web)
	one, two := New(s.o), New(s.o)
	if err := one.Open(); err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if locked, ok := errors.AsType[*publish.LockedError](two.Open()); !ok {
		t.Errorf("a second Open: %v, want a *LockedError", locked)
	}
}

// TestAfterRefusal checks that the message after a refusal matches the published files.
func TestAfterRefusal(t *testing.T) {
	undone := publish.Result{Undone: []publish.StepResult{{Name: "listeners"}}}
	for _, tt := range []struct {
		name string
		o    Outcome
		want string
	}{
		{"back", Outcome{Moved: undone, Restored: true}, "the snapshot before is published again"},
		{"a first publish", Outcome{Restored: true}, "it stays published, since nothing was published before it"},
		{"a full disk on the way back", Outcome{Moved: undone}, "the rollback is not complete, and the next run continues it"},
	} {
		tt.o.Verdict, tt.o.Refusal = RefusedByEnvoy, &publish.Refusal{Step: "listeners"}
		if got := tt.o.Message(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

// heard is a log that tests can wait for.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.more <- struct{}{}:
	default:
	}
	return h.text.Write(p)
}

// wait waits for a text in the log, and removes the log up to the text.
func (h *heard) wait(t *testing.T, text string) {
	t.Helper()
	for late := time.After(2 * time.Minute); ; {
		h.mu.Lock()
		_, after, ok := strings.Cut(h.text.String(), text)
		if ok {
			h.text.Reset()
			h.text.WriteString(after)
		}
		had := h.text.String()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.more:
		case <-late:
			t.Fatalf("%q was not logged, but:\n%s", text, had)
		}
	}
}

// TestWatch checks that edits, settings, SIGHUP and requests reach a running Watch, and that it ends with its
// context.
func TestWatch(t *testing.T) {
	s := newSite(t, web)
	log := &heard{more: make(chan struct{}, 1)}
	s.o.Log = event.New(slog.NewTextHandler(log, nil))
	hangup := make(chan os.Signal, 1)
	var mu sync.Mutex
	settings, strict := 0, s.o
	strict.WarningsAsErrors = true
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, []Options{s.o}, WatchOptions{
			Log:    s.o.Log,
			Watch:  notify.Options{QuietPeriod: 10 * time.Millisecond, Rescan: time.Hour},
			Hangup: hangup,
			Reload: func() ([]Options, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				settings++
				switch settings {
				case 2:
					return nil, false, errors.New("the settings are wrong")
				case 3:
					return []Options{strict}, true, nil
				}
				return nil, false, nil
			},
			Conflict: func(_ string, r control.RetryHeld) string {
				if r.Source != "" {
					return "another tree"
				}
				return ""
			},
		})
	}()
	log.wait(t, "event=published ")
	s.write(other)
	log.wait(t, "the settings are wrong")
	hangup <- os.Interrupt
	log.wait(t, "event=settings-read")
	log.wait(t, "event=published ")
	s.write(wrong)
	log.wait(t, "event=source-invalid ")
	s.write(web)
	log.wait(t, "event=source-valid")
	log.wait(t, "event=published ")

	if _, err := control.Retry(ctx, s.o.Out, control.RetryHeld{Source: "elsewhere"}); err == nil {
		t.Error("a request for another tree is carried out")
	}
	result, err := control.Retry(ctx, s.o.Out, control.RetryHeld{})
	if err != nil || result.Outcome != control.Published {
		t.Errorf("a request to try again: %+v, %v", result, err)
	}
	running, err := control.Ask(ctx, s.o.Out)
	if err != nil || running.Snapshot != result.Snapshot || running.Last.Reason != retrying {
		t.Errorf("the watch says %+v, %v", running, err)
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("Watch once its context has ended: %v", err)
	}
}
