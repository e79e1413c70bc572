package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/tools/portion"
	"xdspub/tools/sh"
)

// repository creates a repository with branches one and two, which hold the same files with different texts.
func repository(t *testing.T, files int) (dir string) {
	t.Helper()
	sh.Git(t)
	dir = t.TempDir()
	fill := func(text string) {
		for i := range files {
			name := filepath.Join(dir, "envoy", fmt.Sprint(i%20), fmt.Sprint(i, ".yaml"))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	sh.Run(t, dir, "git init -q -b one; git config user.name me; git config user.email me@example.com; git config core.fsync none; git config gc.auto 0")
	fill("one")
	sh.Run(t, dir, "git add .; git commit -qm one; git checkout -qb two")
	fill("two2")
	sh.Run(t, dir, "git commit -qam two; git checkout -q one")
	return dir
}

// texts returns how many files below root have each text, and the number of files.
func texts(t *testing.T, root string) (map[string]int, int) {
	t.Helper()
	found, files := map[string]int{}, 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[string(data)]++
		files++
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found, files
}

// TestCheckout checks that a reader that calls Read at each signal sees the files of one branch only.
func TestCheckout(t *testing.T) {
	files := 1000 / portion.Every(3, 5)
	dir := repository(t, files)
	sh.Run(t, dir, "echo '/*/' >.git/info/exclude; echo '!/envoy/' >>.git/info/exclude")
	for _, tt := range []struct {
		name, root string
		setup      string
		poll       time.Duration
	}{
		{name: "work tree", root: "."}, // first, because the other trees are set up in it
		{name: "folder in it", root: "envoy"},
		{name: "polled", root: "envoy", poll: time.Millisecond},
		{name: "linked work tree", root: "linked/envoy", setup: "git worktree add -q --detach linked one"},
		{name: "submodule", root: "super/sub/envoy", setup: "git init -q super; git -C super -c protocol.file.allow=always submodule --quiet add ../ sub; git -C super/sub fetch -q --update-head-ok origin '+refs/heads/*:refs/heads/*'; git -C super/sub checkout -q --detach one"},
		{name: "in the tree", root: "all", setup: "mkdir all; git clone -q --no-hardlinks . all/clone; git -C all/clone fetch -q --update-head-ok origin '+refs/heads/*:refs/heads/*'; git -C all/clone checkout -q --detach one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sh.Run(t, dir, tt.setup)
			root := filepath.Join(dir, tt.root)
			repo := root
			if tt.name == "in the tree" {
				repo = filepath.Join(root, "clone")
			}
			// Without a quiet period, only the lock delays signals.
			w, _ := newWatcher(t, root, Options{QuietPeriod: time.Microsecond, Rescan: time.Hour, Poll: tt.poll})
			run(t, w)
			var done atomic.Bool
			var stale atomic.Bool // a lock was too old to wait for
			checkouts := make(chan error, 1)
			go func() {
				defer done.Store(true)
				for _, branch := range []string{"two", "one", "two"} {
					cmd := exec.Command("git", "checkout", "-q", "--detach", branch)
					cmd.Dir = repo
					timer := time.AfterFunc(patience, func() { stale.Store(true) })
					out, err := cmd.CombinedOutput()
					timer.Stop()
					if err != nil {
						checkouts <- fmt.Errorf("%w: %s", err, out)
						return
					}
				}
				checkouts <- nil
			}()
			read := func() {
				var found map[string]int
				n := 0
				w.Read(t.Context(), func(Changes) { found, n = texts(t, repo) })
				if (n != files || len(found) != 1) && !stale.Load() {
					t.Errorf("read %d files, half of a checkout: %v", n, found)
				}
			}
			for ended := false; !ended; {
				ended = done.Load()
				select {
				case <-w.Signals():
					read()
				default:
					read() // as at the start, or on request
				}
			}
			if err := <-checkouts; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCheckoutSignals checks that a checkout gives one signal, after the lock.
func TestCheckoutSignals(t *testing.T) {
	dir := repository(t, 1000)
	w, _ := newWatcher(t, filepath.Join(dir, "envoy"), Options{QuietPeriod: 200 * time.Millisecond, MaxDelay: time.Hour, Rescan: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.Run(ctx)
	start := time.Now()
	sh.Run(t, dir, "git checkout -q two")
	stale := time.Since(start) > patience // the watch may take the lock for stale if the machine is very busy
	waitSignal(t, w)
	if found, n := texts(t, filepath.Join(dir, "envoy")); n != 1000 || found["two2"] != n {
		t.Errorf("at the signal: %v", found)
	}
	sh.Run(t, dir, "git status; git branch three; git tag v1; git gc -q; git stash list")
	cancel()
	for r := range w.Signals() {
		if !stale {
			t.Errorf("a needless signal: %s", r)
		}
	}
}

// TestLock holds the lock itself, and checks that signals and Read wait.
func TestLock(t *testing.T) {
	for _, poll := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprint("poll ", poll), func(t *testing.T) {
			dir := t.TempDir()
			sh.Run(t, dir, "mkdir -p .git envoy; : >.git/index.lock; echo 1 >envoy/a.yaml")
			w, _ := newWatcher(t, filepath.Join(dir, "envoy"), Options{QuietPeriod: time.Millisecond, MaxDelay: time.Millisecond, Rescan: time.Millisecond, Poll: poll})
			run(t, w)
			read := make(chan struct{})
			go func() {
				defer close(read)
				w.Read(t.Context(), func(Changes) {})
			}()
			if !w.git.busy() {
				t.Fatal("the lock is not seen")
			}
			// Bursts end and get overdue, and rescans come all the time.
			for i := range 50 {
				sh.Run(t, dir, fmt.Sprintf("echo %d >>envoy/a.yaml", i))
			}
			select {
			case r := <-w.Signals():
				t.Errorf("signal %q under the lock", r)
			case <-read:
				t.Error("read under the lock")
			default:
			}
			sh.Run(t, dir, "mv .git/index.lock .git/index")
			waitSignal(t, w)
			<-read
		})
	}
}

// TestStaleLock checks the lock that a killed git leaves behind.
func TestStaleLock(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir -p .git x; : >.git/index.lock")
	lock := filepath.Join(dir, ".git/index.lock")
	w, log := newWatcher(t, dir, Options{QuietPeriod: time.Millisecond, Rescan: -1, Skip: litter})
	run(t, w)
	sh.Run(t, dir, "echo 1 >x/a.yaml")
	log.until(t, counts(filepath.Join(dir, "x/a.yaml")))
	if !w.git.busy() {
		t.Fatal("the lock is not seen")
	}
	w.git.mu.Lock()
	l := w.git.seen[lock]
	l.since = l.since.Add(-patience)
	w.git.seen[lock] = l
	w.git.mu.Unlock()
	waitSignal(t, w)
	if e := last(log.until(t, level(slog.LevelWarn))); e.file != lock {
		t.Errorf("warned of %q, want %q", e.file, lock)
	}
	// The Watcher neither waits for this lock again, nor logs it again.
	for i := range 3 {
		sh.Run(t, dir, fmt.Sprintf("echo %d >x/b.yaml", i))
		waitSignal(t, w)
		w.Read(t.Context(), func(Changes) {})
	}
	sh.Run(t, dir, "echo >x/last.yaml")
	for _, e := range log.until(t, counts(filepath.Join(dir, "x/last.yaml"))) {
		if e.level != slog.LevelDebug {
			t.Errorf("logged %+v", e)
		}
	}
	// The next lock counts again.
	sh.Run(t, dir, "rm .git/index.lock; : >.git/index.lock")
	if !w.git.busy() {
		t.Error("a new lock is taken for the old one")
	}
}

// TestLockAndClock checks that the time of a lock file counts only at the first look. A lock that was missing
// at the last look is at most that old, even if the clock was set forward.
func TestLockAndClock(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir .git; : >.git/index.lock")
	path := filepath.Join(dir, ".git/index.lock")
	old := time.Now().Add(-time.Hour)
	look := func(g *git) bool {
		t.Helper()
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return g.busy()
	}
	first := func() *git {
		g := &git{log: nil}
		g.setGitDirs(set{filepath.Join(dir, ".git"): true})
		return g
	}
	if look(first()) {
		t.Error("a lock that was left behind is waited for")
	}
	g := first()
	sh.Run(t, dir, "rm .git/index.lock")
	if g.busy() {
		t.Error("there is no lock")
	}
	sh.Run(t, dir, ": >.git/index.lock")
	if !look(g) {
		t.Error("a lock that came since the last look is not waited for")
	}
}

// TestLockFromTheFuture checks a lock whose time is in the future, because the clock of a file server may be
// ahead.
func TestLockFromTheFuture(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir .git; : >.git/index.lock")
	future := time.Now().Add(24 * time.Hour)
	path := filepath.Join(dir, ".git/index.lock")
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	g := &git{log: nil}
	g.setGitDirs(set{filepath.Join(dir, ".git"): true})
	if !g.busy() {
		t.Fatal("the lock is not seen")
	}
	if l := g.seen[path]; time.Until(l.since) > 0 {
		t.Errorf("would be waited for until %s", l.since.Add(patience))
	}
}

// TestLocksWithoutEnd checks that the wait for locks that follow each other without a gap ends.
func TestLocksWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".git/index.lock")
	log, events := newLog()
	g := &git{log: log}
	renew := func() { sh.Run(t, dir, "mkdir -p .git; : >.git/new; mv .git/new .git/index.lock") }
	renew()
	g.setGitDirs(set{filepath.Join(dir, ".git"): true})
	if !g.busy() {
		t.Fatal("the lock is not seen")
	}
	l := g.seen[path]
	l.first = time.Now().Add(-longest)
	g.seen[path] = l
	for range 3 {
		renew()
		if g.busy() {
			t.Error("waited for longer")
		}
	}
	if n := events(); n != 1 {
		t.Errorf("told %d times", n)
	}
	sh.Run(t, dir, "rm .git/index.lock")
	g.busy()
	renew()
	if !g.busy() {
		t.Error("not waited for after a gap")
	}
}

// newLog returns a log, and a function that returns the number of its lines.
func newLog() (*event.Log, func() int) {
	var b bytes.Buffer
	return event.New(slog.NewTextHandler(&b, nil)), func() int { return bytes.Count(b.Bytes(), []byte("\n")) }
}

// TestGitPipe checks that a .git that is a pipe does not block, in the tree or above it.
func TestGitPipe(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir -p above/root/x; mkfifo above/.git above/root/.git above/root/x/.git")
	w, _ := newWatcher(t, filepath.Join(dir, "above/root"), Options{Rescan: -1})
	run(t, w)
	w.Read(t.Context(), func(Changes) {})
	sh.Run(t, dir, "mkdir above/root/y; mkfifo above/root/y/.git")
	waitSignal(t, w)
}

// TestRead checks that a tree that changes during a read is read again, but not forever.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir .git")
	w, log := newWatcher(t, dir, Options{Rescan: -1, Skip: litter})
	run(t, w)
	made := 0
	create := func(pattern string) {
		made++
		name := filepath.Join(dir, fmt.Sprintf(pattern, made))
		workbench{t, dir}.write(filepath.Base(name), os.O_CREATE) // makes one event
		if !litter(filepath.Base(name)) {
			log.until(t, counts(name))
		}
	}
	change := func() { create("%d.yaml") }
	swap := func() { create(".%d.swp") }
	checkout := func() { sh.Run(t, dir, "echo $$ >.git/index.new; mv .git/index.new .git/index") }
	tests := []struct {
		name   string
		during func() // runs during the first upTo reads
		upTo   int
		want   int
	}{
		{"rest", nil, 0, 1},
		{"a change", change, 1, 2},
		{"a checkout that leaves the tree as it was", checkout, 1, 2},
		{"many in a row", checkout, reads + 1, reads + 2},
		{"no rest", change, 99, reads},
		{"litter", swap, 99, 1},
	}
	for _, tt := range tests {
		n := 0
		w.Read(t.Context(), func(Changes) {
			if n++; n <= tt.upTo {
				tt.during()
			}
		})
		if n != tt.want {
			t.Errorf("%s: read %d times, want %d", tt.name, n, tt.want)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Read(ctx, func(Changes) { t.Error("read after the end") })
}

// TestReadWithinSave checks that Read waits for a save that has removed its file and not yet written it.
func TestReadWithinSave(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.yaml")
	workbench{t, dir}.write("a.yaml", os.O_CREATE)
	w, log := newWatcher(t, dir, Options{Rescan: -1, QuietPeriod: time.Hour, MaxDelay: time.Second})
	run(t, w)
	saved := make(chan error, 1)
	var found []bool
	w.Read(t.Context(), func(Changes) {
		if len(found) == 0 {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			log.until(t, counts(name))
			go func() {
				rest(t.Context(), 10*time.Millisecond)
				saved <- os.WriteFile(name, nil, 0o644)
			}()
		}
		_, err := os.Stat(name)
		found = append(found, err == nil)
	})
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if want := []bool{false, true}; !slices.Equal(found, want) {
		t.Errorf("the file was there: %v, want %v", found, want)
	}
}

// TestReadWhileLinksTurn changes the link of a Kubernetes volume during each of the first reads, more often
// than the limit reads. The last read sees a single revision.
func TestReadWhileLinksTurn(t *testing.T) {
	dir := t.TempDir()
	sh.Run(t, dir, "mkdir root; "+kubelet(0)+"; ln -s ..data/a.yaml root/a.yaml; ln -s ..data/b.yaml root/b.yaml")
	w, _ := newWatcher(t, filepath.Join(dir, "root"), Options{QuietPeriod: time.Millisecond, Rescan: time.Hour})
	run(t, w)
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, "root", name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	n, a, b := 0, "", ""
	w.Read(t.Context(), func(Changes) {
		a = text("a.yaml")
		if n++; n <= 2*reads {
			sh.Run(t, dir, kubelet(n))
		}
		b = text("b.yaml")
	})
	if a != b || n != 2*reads+1 {
		t.Errorf("read %d times, the last time %q and %q", n, a, b)
	}
}
