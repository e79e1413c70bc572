package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOverflow fills the queue before anyone reads it, and then makes a folder,
// whose event is among the dropped ones.
func TestOverflow(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip(err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if limit > 1<<17 {
		t.Skipf("max_queued_events is %d: filling it takes too long", limit)
	}
	root := t.TempDir()
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1})
	// The kernel merges equal neighbours, so two files take turns. fsnotify reads
	// up to 64 KiB, 4096 events, ahead.
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.Create(filepath.Join(root, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	for i := range limit + 5000 {
		if _, err := files[i%2].WriteString("x"); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, root, "mkdir -p sub/deep")
	run(t, w)
	log.until(t, level(slog.LevelWarn))
	waitSignal(t, w)
	sh(t, root, "echo 1 >sub/deep/a.yaml")
	log.until(t, func(e entry) bool { return e.path == filepath.Join(root, "sub/deep/a.yaml") })
}

// TestLimits meets the real limits of inotify, in a user namespace with its own:
// the machine's are shared with everything else that runs on it.
func TestLimits(t *testing.T) {
	const inside = "WATCH_TEST_LIMITS"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLimits$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Skip("no user namespaces here: ", err)
		}
		if t.Logf("%s", out); err != nil {
			t.Fail()
		}
		return
	}

	limit := func(name string, n int) {
		if err := os.WriteFile("/proc/sys/user/"+name, []byte(strconv.Itoa(n)), 0); err != nil {
			t.Skip(err)
		}
	}
	wantError := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	root := t.TempDir()
	sh(t, root, "mkdir a b c")

	limit("max_inotify_instances", 0)
	_, err := New(root, Options{})
	wantError(err, "too many open files: raise the sysctl fs.inotify.max_user_instances")

	limit("max_inotify_instances", 1)
	limit("max_inotify_watches", 3)
	_, err = New(root, Options{})
	wantError(err, "no space left on device: raise the sysctl fs.inotify.max_user_watches")

	// Once it runs, a limit is a warning, told once, and healed by a rescan.
	limit("max_inotify_watches", 6)
	w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: 20 * time.Millisecond})
	run(t, w)
	meet := func(want string, heal func()) {
		t.Helper()
		warned := log.until(t, level(slog.LevelWarn))
		wantError(errors.New(warned[len(warned)-1].err), want)
		for range 5 {
			waitSignal(t, w)
		}
		heal()
		for _, e := range log.until(t, level(slog.LevelInfo)) {
			if e.level == slog.LevelWarn {
				t.Errorf("warned again: %s", e.err)
			}
		}
	}
	sh(t, root, "mkdir d e f")
	meet("fs.inotify.max_user_watches", func() { limit("max_inotify_watches", 20) })
	limit("max_inotify_instances", 0)
	meet("fs.inotify.max_user_instances", func() { limit("max_inotify_instances", 1) })
}
