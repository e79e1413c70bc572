package hook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/observe/hook"
)

// quick are bounds of time for tests, except for those that a test sets.
var quick = hook.Times{
	Grace: 50 * time.Millisecond, LeastBackoff: time.Millisecond, MostBackoff: 20 * time.Millisecond, Report: time.Nanosecond, Exit: time.Minute,
}

// workbench is a log with hooks.
type workbench struct {
	*event.Log
	hooks *hook.Hooks

	mu      sync.Mutex
	records []event.Record
	json    bytes.Buffer // the lines of --log-format json
}

// start starts hooks.
func start(t *testing.T, o hook.Options) *workbench {
	t.Helper()
	if o.Times == (hook.Times{}) {
		o.Times = quick
	}
	w := &workbench{hooks: hook.New(o)}
	w.Log = event.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}), w.hooks.Event, func(r event.Record) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.records = append(w.records, r)
	})
	w.hooks.Start(w.Log)
	t.Cleanup(w.hooks.Close)
	return w
}

func (w *workbench) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.json.Write(p)
}

func (w *workbench) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.json.String()
}

// own returns the events of package hook.
func (w *workbench) own() (list []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records {
		switch r.Event.(type) {
		case event.HookFailed, event.WebhookFailed, event.HookRecovered:
			list = append(list, r.Event)
		}
	}
	return list
}

// log writes an event to the hooks and to the log.
func (w *workbench) log(e event.Event) { w.Log.Write(e) }

// command parses a command.
func command(t *testing.T, text string) []hook.Command {
	t.Helper()
	c, err := hook.ParseCommand(text)
	if err != nil {
		t.Fatal(err)
	}
	return []hook.Command{c}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

// read returns the text of a file; empty if there is none.
func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, wants string }{
		{"cat", ""},
		{"published,warn=cat -A", ""},
		{`error=sh -c "cat >x; a=b"`, ""},
		{"publishd=cat", "did you mean published?"},
		{"zzz=cat", "no event has the name zzz: use names of docs/logs.md"},
		{"hook-failed=cat", "no hook gets the event hook-failed"},
		{"webhook-failed,published=cat", "no hook gets the event webhook-failed"},
		{"A=b cat", "no program"},
		{"published=", "write NAME=CMD or CMD"},
		{"''", "write NAME=CMD or CMD"},
		{"", "write NAME=CMD or CMD"},
		{"cat 'x", "the quote ' has no end"},
		{"no-such-program", "no program: exec"},
	} {
		if _, err := hook.ParseCommand(tt.text); (err == nil) != (tt.wants == "") || err != nil && !strings.Contains(err.Error(), tt.wants) {
			t.Errorf("command %q: %v", tt.text, err)
		}
	}
	for _, tt := range []struct{ text, wants, shown string }{
		{"https://example.org/services/T0/B0", "", "https://example.org/…"},
		{"published=slack+https://example.org/x?a=b", "", "published=slack+https://example.org/…"},
		{"alertmanager+http://[::1]:9093/api/v2/alerts", "", "alertmanager+http://[::1]:9093/…"},
		{"https://user:password@example.org/", "", "…"},
		{"https://example.org/a+http://b=c", "", "https://example.org/…"},
		{"teams+https://example.org/x", "is slack or alertmanager", "teams+https://example.org/…"},
		{"ftp://example.org/x", "write URL or NAME=URL", "ftp://example.org/…"},
		{"example.org/x", "write URL or NAME=URL", "…"},
		{"https:///x", "write the URL as", "https:///…"},
		{"https://exa mple.org/x", "write the URL as", "https://exa mple.org/…"},
		{"https://example.org/x#y", "leave out the #", "https://example.org/…"},
		{"publishd=https://example.org/x", "did you mean published?", "publishd=https://example.org/…"},
		{"", "write URL or NAME=URL", "…"},
	} {
		if _, err := hook.ParseWebhook(tt.text); (err == nil) != (tt.wants == "") || err != nil && !strings.Contains(err.Error(), tt.wants) {
			t.Errorf("webhook %q: %v", tt.text, err)
		}
		if is := hook.Shown(tt.text); is != tt.shown {
			t.Errorf("%q is shown as %q", tt.text, is)
		}
	}
}

// TestCommand: a program gets each event that it selects, in order, as the line of --log-format json.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	program := func(name string) string {
		return fmt.Sprintf(`sh -c 'cat >>"$0"' "%s"`, filepath.Join(dir, name))
	}
	w := start(t, hook.Options{Commands: slices.Concat(
		command(t, program("all the events")), command(t, "published,path-changed="+program("named")),
		command(t, "warn="+program("warn")), command(t, "error="+program("error"))),
	})
	w.log(event.PathChanged{Path: "a.yaml"}) // DEBUG
	w.log(event.Published{Snapshot: "v1"})
	w.For("edge").Write(event.WatchPartial{Error: errors.New("no"), Rescan: time.Minute}) // WARN
	w.log(event.Failed{Error: errors.New("a\nb \"c\""), Reason: "change"})                // ERROR
	w.hooks.Close()
	lines := slices.Collect(strings.Lines(w.text()))
	if len(lines) != 4 {
		t.Fatal(lines)
	}
	for name, want := range map[string][]string{
		"all the events": lines[1:], "named": lines[:2], "warn": lines[2:], "error": lines[3:],
	} {
		if is := read(filepath.Join(dir, name)); is != strings.Join(want, "") {
			t.Errorf("%s:\n%swant\n%s", name, is, want)
		}
	}
}

// TestLongEvent: an event above 64 KiB has its name without its keys.
func TestLongEvent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "got")
	w := start(t, hook.Options{Commands: command(t, "tee "+file)})
	w.log(event.Failed{Error: errors.New(strings.Repeat("x", 1<<20)), Reason: "change"})
	w.hooks.Close()
	if is := read(file); !strings.Contains(is, `"event":"failed","omitted_bytes":10`) || len(is) > 1000 {
		t.Errorf("%.1000s", is)
	}
}

// TestCommandFails: a failure is an event, as its end is, and neither reaches a hook. Nothing else changes.
func TestCommandFails(t *testing.T) {
	dir := t.TempDir()
	script := `echo x >>runs; head -c 100000 /dev/zero; echo "first" >&2; head -c 5000 /dev/zero | tr "\0" "y" >&2; printf "\nno \033[31mroom" >&2; test -e good`
	t.Chdir(dir)
	w := start(t, hook.Options{Commands: command(t, "sh -c '"+script+"'"), Times: quick})
	w.log(event.Published{Snapshot: "v1"})
	eventually(t, "a failure", func() bool { return len(w.own()) == 1 })
	failed := w.own()[0].(event.HookFailed)
	if text := failed.Error.Error(); filepath.Base(failed.Program) != "sh" || failed.Lost != 1 ||
		!strings.HasPrefix(text, "exit status 1; it said: y") || !strings.HasSuffix(text, "no \ufffd[31mroom") || len(text) > 1200 {
		t.Errorf("%+v", failed)
	}
	if err := os.WriteFile("good", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.log(event.SourceValid{})
	}
	w.hooks.Close()
	if own := w.own(); len(own) != 2 || own[1] != (event.HookRecovered{Hook: failed.Program}) {
		t.Errorf("%+v", own)
	}
	if runs := strings.Count(read("runs"), "x"); runs != 4 {
		t.Errorf("%d runs for 4 events", runs)
	}
}

// TestManyFailures: failures without end are told once in a time, and none is forgotten.
func TestManyFailures(t *testing.T) {
	w := start(t, hook.Options{Commands: command(t, "false"), Times: hook.Times{Report: time.Hour, Exit: time.Minute}})
	for range 30 {
		w.log(event.SourceValid{})
	}
	w.hooks.Close()
	lost := 0
	for _, e := range w.own() {
		lost += e.(event.HookFailed).Lost
	}
	if own := w.own(); len(own) != 2 || lost != 30 {
		t.Errorf("%+v", own)
	}
}

// TestCommandIsGone: a program that was removed after the start is a failure.
func TestCommandIsGone(t *testing.T) {
	program := filepath.Join(t.TempDir(), "notify")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := start(t, hook.Options{Commands: command(t, program)})
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	w.log(event.SourceValid{})
	w.hooks.Close()
	if own := w.own(); len(own) != 1 || !strings.Contains(own[0].(event.HookFailed).Error.Error(), "no such file") {
		t.Errorf("%+v", own)
	}
}

// pids returns the process ids in a file, once there are n of them.
func pids(t *testing.T, file string, n int) (list []int) {
	t.Helper()
	eventually(t, "processes in "+file, func() bool { return len(strings.Fields(read(file))) >= n })
	for _, field := range strings.Fields(read(file)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

// TestCommandHangs: a program that does not end, and ignores SIGTERM, is killed with its children. The next event gets
// a new run.
func TestCommandHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	times := quick
	times.Timeout = 300 * time.Millisecond
	w := start(t, hook.Options{Times: times, Commands: command(t, `sh -c 'trap "" TERM; (trap "" TERM; sleep 1000) & echo $$ $! >>"$0"; wait' `+file)})
	for n := 1; len(strings.Fields(read(file))) < 4; n++ { // on a busy machine, a program may be killed before it begins
		w.log(event.SourceValid{})
		eventually(t, "a failure", func() bool { return len(w.own()) == n })
	}
	for _, e := range w.own() {
		if text := e.(event.HookFailed).Error.Error(); text != "the program did not end within 300ms, and was killed" {
			t.Error(text)
		}
	}
	noProcess(t, pids(t, file, 4))
}

// TestCommandLeavesProcesses: what a program leaves behind in its group is killed.
func TestCommandLeavesProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	w := start(t, hook.Options{Times: quick, Commands: command(t, `sh -c 'sleep 1000 & echo $! >>"$0"; sleep 1000 2>/dev/null & echo $! >>"$0"' `+file)})
	w.log(event.SourceValid{})
	w.hooks.Close()
	noProcess(t, pids(t, file, 2))
	if own := w.own(); len(own) != 0 {
		t.Errorf("%+v", own)
	}
}

// TestSlowCommand: a slow program holds up neither the log nor another hook. The queue of the program is bounded, and
// keeps the newest events.
func TestSlowCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	slow := `sh -c 'cat >>slow; while ! test -e go; do sleep 0.01; done'`
	w := start(t, hook.Options{Times: quick, Commands: append(command(t, "published="+slow), command(t, `recovered=sh -c 'cat >>other'`)...)})
	w.log(event.Published{Snapshot: "first"})
	eventually(t, "a run", func() bool { return read("slow") != "" })
	for i := range 1500 {
		w.log(event.Published{Snapshot: strconv.Itoa(i)})
	}
	w.log(event.Recovered{Reason: "change"})
	eventually(t, "the other hook", func() bool { return read("other") != "" })
	if err := os.WriteFile("go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last event", func() bool { return strings.Contains(read("slow"), `"snapshot":"1499"`) })
	w.hooks.Close()
	if lines := slices.Collect(strings.Lines(read("slow"))); len(lines) != 1001 || !strings.Contains(lines[1], `"snapshot":"500"`) {
		t.Errorf("%d lines, the second %s", len(lines), lines[1])
	}
	own := w.own()
	if len(own) == 0 || own[0].(event.HookFailed).Lost != 500 || !strings.Contains(own[0].(event.HookFailed).Error.Error(), "more than 1000 events, or 4 MiB, wait") {
		t.Errorf("%+v", own)
	}
}

// TestQueueBytes: a queue holds 4 MiB at most.
func TestQueueBytes(t *testing.T) {
	t.Chdir(t.TempDir())
	w := start(t, hook.Options{Times: quick, Commands: command(t, `sh -c 'cat >>slow; while ! test -e go; do sleep 0.01; done'`)})
	w.log(event.SourceValid{})
	eventually(t, "a run", func() bool { return read("slow") != "" })
	text := strings.Repeat("x", 60_000)
	for range 100 {
		w.log(event.Failed{Error: errors.New(text), Reason: "change"})
	}
	if err := os.WriteFile("go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.hooks.Close()
	lost := 0
	for _, e := range w.own() {
		if failed, ok := e.(event.HookFailed); ok {
			lost += failed.Lost
		}
	}
	if lines := strings.Count(read("slow"), "\n"); lines != 70 || lost != 31 {
		t.Errorf("%d lines, %d lost", lines, lost)
	}
}

// TestClose: Close waits for the queue, but not for a program that hangs.
func TestClose(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	times := quick
	times.Exit, times.Grace = 200*time.Millisecond, time.Minute
	w := start(t, hook.Options{Times: times, Commands: command(t, `sh -c 'echo $$ >>"$0"; exec sleep 1000' `+file)})
	for range 3 {
		w.log(event.SourceValid{})
	}
	pids(t, file, 1)
	w.hooks.Close()
	w.hooks.Close()
	w.log(event.SourceValid{})
	list := pids(t, file, 1)
	noProcess(t, list)
	lost := 0
	for _, e := range w.own() {
		lost += e.(event.HookFailed).Lost
	}
	if len(list) != 1 || lost != 3 {
		t.Errorf("%d runs, lost: %+v", len(list), w.own())
	}
}

// TestNoHooks: Hooks without a hook are nil, and do nothing.
func TestNoHooks(t *testing.T) {
	h := hook.New(hook.Options{})
	if h != nil {
		t.Fatal(h)
	}
	event.New(slog.DiscardHandler, h.Event).Write(event.SourceValid{})
	h.Start(nil)
	h.Close()
}

// equal reports whether two JSON documents are equal.
func equal(t *testing.T, is, want string) bool {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(is), &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err, is, want)
	}
	return reflect.DeepEqual(a, b)
}
