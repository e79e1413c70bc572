package operator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/watch/control"
)

// machine has clocks that a test sets.
type machine struct {
	day   time.Time
	start string
	up    time.Duration
}

func (m *machine) clock() Clock {
	return Clock{Day: func() time.Time { return m.day }, Uptime: func() (string, time.Duration) { return m.start, m.up }}
}

// runs lets time pass.
func (m *machine) runs(d time.Duration) { m.day, m.up = m.day.Add(d), m.up+d }

// TestDeadline checks how much of an hour is left after 20 minutes, while somebody sets the clock or starts the machine
// again. looks lets a watch look at the Deadline before each of the steps.
func TestDeadline(t *testing.T) {
	const hour = time.Hour
	set := func(by time.Duration) func(*machine) {
		return func(m *machine) { m.day = m.day.Add(by) }
	}
	pass := func(d time.Duration) func(*machine) { return func(m *machine) { m.runs(d) } }
	boot := func(m *machine) { m.start, m.up = "second", time.Minute }
	for name, c := range map[string]struct {
		steps []func(*machine)
		looks bool
		want  time.Duration
	}{
		"time passes":                         {[]func(*machine){pass(20 * time.Minute)}, false, 40 * time.Minute},
		"after the end":                       {[]func(*machine){pass(2 * hour)}, false, 0},
		"the clock is set forward":            {[]func(*machine){pass(20 * time.Minute), set(24 * hour)}, false, 40 * time.Minute},
		"the clock is set back":               {[]func(*machine){pass(20 * time.Minute), set(-24 * hour)}, false, 40 * time.Minute},
		"a boot":                              {[]func(*machine){pass(20 * time.Minute), boot}, false, 40 * time.Minute},
		"a boot, with a clock far behind":     {[]func(*machine){pass(20 * time.Minute), boot, set(-1000 * hour)}, false, hour},
		"set forward, a look, then a boot":    {[]func(*machine){pass(20 * time.Minute), set(24 * hour), boot}, true, 40 * time.Minute},
		"a boot, a look, then set forward":    {[]func(*machine){pass(20 * time.Minute), boot, set(24 * hour)}, true, 40 * time.Minute},
		"far behind, a look, then set right":  {[]func(*machine){set(-1000 * hour), boot, set(1000 * hour), pass(20 * time.Minute)}, true, 40 * time.Minute},
		"set back, a look, a boot, some time": {[]func(*machine){pass(10 * time.Minute), set(-hour), boot, pass(10 * time.Minute)}, true, 40 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{day: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), start: "first", up: 5 * hour}
			d := m.clock().In(hour)
			for _, step := range c.steps {
				step(m)
				if c.looks {
					d.Adjust(m.clock())
				}
			}
			if left := m.clock().Left(d); left != c.want {
				t.Errorf("%s are left, want %s", left, c.want)
			}
		})
	}
}

// TestAdjust checks that Adjust reports a change only if a clock has moved.
func TestAdjust(t *testing.T) {
	m := &machine{day: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), start: "first"}
	d := m.clock().In(time.Hour)
	m.runs(time.Minute)
	if d.Adjust(m.clock()) {
		t.Error("time has passed, and no clock was set")
	}
	m.day = m.day.Add(time.Minute)
	if !d.Adjust(m.clock()) || d.Adjust(m.clock()) {
		t.Error("the clock was set once")
	}
	if !d.At.Equal(m.day.Add(59 * time.Minute)) {
		t.Errorf("the end is at %s by the new clock", d.At)
	}
}

// TestSystemClock checks that the clocks of the machine run.
func TestSystemClock(t *testing.T) {
	for name, uptime := range map[string]func() (string, time.Duration){"machine": SystemClock().Uptime, "process": uptimeOfProcess} {
		start, up := uptime()
		time.Sleep(time.Millisecond)
		again, later := uptime()
		if start == "" || start != again || later <= up {
			t.Errorf("%s: %q %s, then %q %s", name, start, up, again, later)
		}
	}
}

// TestModes checks each pair of a mode and an input by rules that do not use the table, and that the decisions have the
// next mode afterwards.
func TestModes(t *testing.T) {
	m := &machine{start: "first"}
	ends := m.clock().In(time.Hour)
	m.runs(2 * time.Hour)
	who := control.Decision{By: "alice@host", Reason: "x"}
	pause, pin := Pause{Decision: who, Ends: &ends}, Pin{Decision: who, Entry: "1", Waits: []string{"a"}}
	trial := Trial{Decision: who, Snapshot: "v1", Source: "a", Entry: "1", Ends: ends}
	has := map[Mode]Decisions{
		Follows: {}, Paused: {Paused: &pause}, Pinned: {Pinned: &pin}, PausedPinned: {Paused: &pause, Pinned: &pin},
		Tried: {Trial: &trial}, PausedTried: {Paused: &pause, Trial: &trial},
	}
	does := map[input]func(*Decisions) bool{
		pauseAsked:    func(d *Decisions) bool { return d.Pause(pause, false) == nil },
		pauseChanged:  func(d *Decisions) bool { return d.Pause(pause, true) == nil },
		pauseOver:     func(d *Decisions) bool { return d.EndPause(m.clock()) != nil },
		pinAsked:      func(d *Decisions) bool { d.Pin(pin); return true },
		pinRefused:    func(d *Decisions) bool { return d.RefusePin() != nil },
		sourceChanged: func(d *Decisions) bool { return d.EndPin() != nil },
		resumeAsked: func(d *Decisions) bool {
			pause, pin := d.Resume()
			return pause != nil || pin != nil
		},
		trialBegun:     func(d *Decisions) bool { return d.Begin(trial) },
		trialRefused:   func(d *Decisions) bool { return d.RefuseTrial() },
		trialConfirmed: func(d *Decisions) bool { return d.Confirm(who) != nil },
	}
	for mode := range modes {
		for i := range inputs {
			d := has[mode]
			if d.Mode() != mode {
				t.Fatalf("mode %d: the decisions have mode %d", mode, d.Mode())
			}
			paused, pinned, tried, allowed := d.Paused != nil, d.Pinned != nil, d.Trial != nil, true
			switch i {
			case pauseAsked:
				allowed, paused = !paused, true
			case pauseChanged:
				paused = true
			case pauseOver:
				allowed, paused = paused, false
			case pinAsked:
				pinned, tried = true, false
			case trialBegun:
				if allowed = !paused && !tried; allowed {
					tried, pinned = true, false
				}
			case trialRefused, trialConfirmed:
				allowed, tried = tried, false
			case pinRefused:
				allowed, pinned = pinned, false
			case sourceChanged:
				if allowed = pinned && !paused; allowed {
					pinned = false
				}
			case resumeAsked:
				allowed, paused, pinned = paused || pinned, false, false
			}
			was, wasTried := d.Pinned != nil, d.Trial != nil
			if is := does[i](&d); is != allowed {
				t.Errorf("mode %d, input %d: allowed: %t", mode, i, is)
			}
			if i == pinAsked && was { // the pin before is kept for pinRefused
				if d.Pinned.Before == nil || d.RefusePin() == nil || d.Pinned == nil {
					t.Errorf("mode %d: a refused pin leaves %+v", mode, d.Pinned)
				}
			}
			if i == pinAsked && wasTried { // so is the trial
				if again := d; again.RefusePin() == nil || again.Trial == nil || again.Mode() != mode {
					t.Errorf("mode %d: a refused pin leaves %+v", mode, again)
				}
			}
			if i == trialBegun && was && allowed { // and the pin
				if again := d; !again.RefuseTrial() || again.Mode() != mode {
					t.Errorf("mode %d: a refused trial leaves %+v", mode, again)
				}
			}
			if is := (d.Trial != nil); is != tried {
				t.Errorf("mode %d, input %d: on trial: %t", mode, i, is)
			}
			if is := (d.Paused != nil); is != paused {
				t.Errorf("mode %d, input %d: paused: %t", mode, i, is)
			}
			if is := (d.Pinned != nil); is != pinned {
				t.Errorf("mode %d, input %d: pinned: %t", mode, i, is)
			}
			if next := transitions[mode][i]; allowed && d.Mode() != next || !allowed && (next != refused || d.Mode() != mode) {
				t.Errorf("mode %d, input %d: mode %d, and the table has %d", mode, i, d.Mode(), next)
			}
		}
	}
}

// TestFollows checks which source trees are published.
func TestFollows(t *testing.T) {
	who := control.Decision{By: "alice@host", Reason: "x"}
	var d Decisions
	follows := func(want map[string]bool) {
		t.Helper()
		for hash, is := range want {
			if d.Follows(hash) != is {
				t.Errorf("%+v: follows %s: %t", d, hash, !is)
			}
		}
	}
	follows(map[string]bool{"a": true})
	d.Pin(Pin{Decision: who, Entry: "1", Waits: []string{"a"}})
	follows(map[string]bool{"a": false, "b": true})
	d.Pin(Pin{Decision: who, Entry: "2", Waits: []string{"b", "a"}})
	follows(map[string]bool{"a": false, "b": false, "c": true})
	if err := d.Pause(Pause{Decision: who}, false); err != nil {
		t.Fatal(err)
	}
	follows(map[string]bool{"a": false, "c": false})
	for i := range 3 * maxWaits {
		d.Pin(Pin{Decision: who, Entry: "3", Waits: []string{fmt.Sprint(i)}})
	}
	if err := d.check(); err != nil || len(d.Pinned.Waits) != maxWaits {
		t.Errorf("%d trees wait: %v", len(d.Pinned.Waits), err)
	}
}

func open(t *testing.T) (dir *publish.Dir, file string) {
	t.Helper()
	dir, err := publish.Open(t.TempDir(), publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir, filepath.Join(dir.Path(), ".xdspub", record)
}

// TestWrite checks that decisions outlive their process, in a file for its user alone.
func TestWrite(t *testing.T) {
	dir, file := open(t)
	if d, err := Read(dir.Path()); err != nil || d.Mode() != Follows {
		t.Errorf("without a record: %+v, %v", d, err)
	}
	var d Decisions
	ends := SystemClock().In(time.Hour)
	want := Pause{Decision: control.Decision{By: "alice@host", Reason: "incident 42", Since: SystemClock().Now()}, Ends: &ends}
	if err := d.Pause(want, false); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir.Path())
	if err != nil || got.Paused == nil || got.Paused.Decision != want.Decision || *got.Paused.Ends != ends {
		t.Errorf("read %+v, %v", got.Paused, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if is, err := ShownIn(dir.Path()); is.Pinned != nil || is.Trial != nil || err != nil || !strings.Contains(is.Paused.String(), "by alice@host since 20") || !strings.Contains(is.Paused.String(), "Z until 20") {
		t.Errorf("%v %v", is, err)
	}
	var taken *TakenError
	if err := got.Pause(want, false); !errors.As(err, &taken) || taken.Pause.By != "alice@host" {
		t.Errorf("a second pause: %v", err)
	}
}

// TestGuarded checks that Read accepts what a guard records about a change of many resources with strange names.
func TestGuarded(t *testing.T) {
	for _, what := range []string{"", strings.Repeat("x", 2*control.MaxText), strings.Repeat("é ", control.MaxText), "a\x1b[2J  b\n\xff"} {
		dir, _ := open(t)
		d := Decisions{Guarded: &control.Guarded{Change: "fd2d2834f1158ebc", What: diag.ClipLine(what, control.MaxText)}}
		if err := d.Write(dir); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir.Path())
		if err != nil || got.Guarded.What != d.Guarded.What {
			t.Errorf("%.20q: %+v, %v", what, got.Guarded, err)
		}
	}
}

// TestDamaged checks that a record that can't be read counts as a reason not to publish, never as no record.
func TestDamaged(t *testing.T) {
	long := strings.Repeat("x", 1001)
	for name, text := range map[string]string{
		"empty": "", "half": `{"layout": 1, "pau`, "no layout": `{}`, "a newer layout": `{"layout": 99}`, "another type": `{"layout": 1, "pause": 7}`,
		"nobody":                 `{"layout": 1, "pause": {"by": "", "reason": "x", "since": "2030-01-02T03:04:05Z"}}`,
		"no reason":              `{"layout": 1, "pause": {"by": "a@b", "reason": " ", "since": "2030-01-02T03:04:05Z"}}`,
		"a long text":            `{"layout": 1, "pause": {"by": "a@b", "reason": "` + long + `", "since": "2030-01-02T03:04:05Z"}}`,
		"no length":              `{"layout": 1, "pause": {"by": "a@b", "reason": "x", "since": "2030-01-02T03:04:05Z", "ends": {"at": "2030-01-02T03:04:05Z"}}}`,
		"a trial without an end": `{"layout": 1, "trial": {"by": "a@b", "reason": "x", "since": "2030-01-02T03:04:05Z", "snapshot": "v1", "source": "v1", "entry": "1", "ends": {}}}`,
		"a trial without entry":  `{"layout": 1, "trial": {"by": "a@b", "reason": "x", "since": "2030-01-02T03:04:05Z", "snapshot": "v1", "source": "v1", "ends": {"length_ns": 1}}}`,
		"a pin and a trial": `{"layout": 1, "pin": {"by": "a@b", "reason": "x", "since": "2030-01-02T03:04:05Z", "entry": "1", "waits": []}, "trial": ` +
			`{"by": "a@b", "reason": "x", "since": "2030-01-02T03:04:05Z", "snapshot": "v1", "source": "v1", "entry": "1", "ends": {"length_ns": 1}}}`,
		"an end without a way": `{"layout": 1, "ended_trial": {"by": "a@b", "reason": "x", "since": "2030-01-02T03:04:05Z", "snapshot": "v1", "how": "lost"}}`,
		"large":                `{"layout": 1, "pause": null, "x": "` + strings.Repeat("x", 1<<20) + `"}`,
		"no change":            `{"layout": 1, "guarded": {"since": "2030-01-02T03:04:05Z", "what": "x"}}`,
		"a long id":            `{"layout": 1, "guarded": {"change": "` + long + `", "what": "x"}}`,
		"an escape":            `{"layout": 1, "guarded": {"change": "fd2d\u001b[2J", "what": "x"}}`,
		"two lines":            `{"layout": 1, "guarded": {"change": "fd2d", "what": "x\nin sync"}}`,
		"approved":             `{"layout": 1, "approved": {"by": "a@b", "reason": "x", "change": "fd2d", "what": "\u001b[2J"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := open(t)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir.Path()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "xdspub resume --out ") && name != "a newer layout" {
				t.Errorf("%v", err)
			}
			if err := (Decisions{}).Write(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir.Path()); err != nil {
				t.Errorf("after Write: %v", err)
			}
		})
	}
	t.Run("a link", func(t *testing.T) {
		dir, file := open(t)
		if err := os.Symlink("/etc/passwd", file); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir.Path()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "link") {
			t.Errorf("%v", err)
		}
	})
}
