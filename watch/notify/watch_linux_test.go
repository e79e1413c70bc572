package notify

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xdspub/tools/sh"
)

// TestOverflow fills the queue of events before anyone reads it, and then creates a folder, whose event is
// dropped.
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
	sh.Run(t, root, "mkdir -p sub/deep")
	run(t, w)
	log.until(t, level(slog.LevelWarn))
	waitSignal(t, w)
	sh.Run(t, root, "echo 1 >sub/deep/a.yaml")
	log.until(t, func(e entry) bool { return e.path == filepath.Join(root, "sub/deep/a.yaml") })
}

// again runs the calling test in a new process with attr. again returns true in the new process.
func again(t *testing.T, attr *syscall.SysProcAttr) (inside bool) {
	t.Helper()
	const variable = "WATCH_TEST_INSIDE"
	if os.Getenv(variable) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	switch _, ran := errors.AsType[*exec.ExitError](err); {
	case err != nil && !ran:
		t.Skip("NOT TESTED, needs another process: ", err)
	case ran:
		t.Errorf("in the other process: %v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("NOT TESTED:\n%s", out)
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Errorf("nothing ran:\n%s", out)
	}
	return false
}

// own returns attributes for new namespaces in which this user has all rights.
func own(kinds uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  kinds | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}

// TestLimits tests the real limits of inotify in a user namespace, which has limits of its own.
func TestLimits(t *testing.T) {
	if !again(t, own(0)) {
		return
	}
	limit := func(name string, n int) {
		if err := os.WriteFile("/proc/sys/user/max_inotify_"+name, []byte(strconv.Itoa(n)), 0); err != nil {
			t.Skip(err)
		}
	}
	// The kernel counts an instance for a while after its end. If instances are not the scarce resource,
	// permit more than the rescans can have closed meanwhile.
	const enough = 100
	const watches, instances = "no space left on device: raise the sysctl fs.inotify.max_user_watches", "too many open files: raise the sysctl fs.inotify.max_user_instances"
	for _, tt := range []struct {
		name               string
		watches, instances int    // limits before New
		warned             string // the warning of New
		then               func(root string)
		warnedThen         string
	}{
		{name: "too few watches", watches: 4, instances: enough, warned: watches},
		{name: "no instance", watches: 10, instances: 0, warned: instances},
		{name: "no watch left for new folders", watches: 6, instances: enough,
			then: func(root string) { sh.Run(t, root, "mkdir d e f") }, warnedThen: watches},
		{name: "no instance left for the rescan", watches: 10, instances: 1,
			then: func(string) { limit("instances", 0) }, warnedThen: instances},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			sh.Run(t, root, "mkdir a b c")
			limit("watches", tt.watches)
			limit("instances", tt.instances)
			w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: 20 * time.Millisecond})
			w.poll = 5 * time.Millisecond
			wanted := tt.warned
			if tt.then != nil {
				run(t, w)
				tt.then(root)
				wanted = tt.warnedThen
			}
			warned := log.until(t, level(slog.LevelWarn))
			if err := warned[len(warned)-1].err; !strings.HasPrefix(err, "watch "+root+": ") || !strings.Contains(err, wanted) {
				t.Errorf("warned %q, want %q", err, wanted)
			}
			if m := w.Mode(); m != Polling {
				t.Errorf("the mode is %s", m)
			}
			if tt.then == nil {
				run(t, w)
			}
			for range 5 {
				waitSignal(t, w) // a rescan, which hits the limit again
			}
			sh.Run(t, root, "mkdir -p c/x; echo 1 >c/x/a.yaml")
			var got []entry
			got = append(got, log.until(t, counts(root+"/c/x/a.yaml"))...)
			sh.Run(t, root, "echo 22 >c/x/a.yaml")
			got = append(got, log.until(t, counts(root+"/c/x/a.yaml"))...)

			limit("watches", 20)
			limit("instances", enough)
			got = append(got, log.until(t, level(slog.LevelInfo))...)
			if m := w.Mode(); m != Events {
				t.Errorf("with enough watches, the mode is %s", m)
			}
			for _, e := range got {
				if e.level == slog.LevelWarn {
					t.Errorf("warned again: %s", e.err)
				}
				if e.level == slog.LevelDebug && e.op != "POLL" && tt.then == nil {
					t.Errorf("%+v came by an event", e)
				}
			}
			// A rescan comes every 20ms and can drop an event, but sends its own signal.
			e := log.again(t, root+"/c/x/a.yaml", func(try int) { sh.Run(t, root, fmt.Sprintf("echo %d >c/x/a.yaml", try)) })
			if e.op == "POLL" {
				t.Errorf("still polls: %+v", e)
			}
		})
	}

	// A polled tree leaves all watches to other processes, because Envoy may run as the same user.
	limit("watches", 4)
	limit("instances", 1)
	root := t.TempDir()
	sh.Run(t, root, "mkdir a b c d")
	w, _ := newWatcher(t, root, Options{})
	fd, err := unix.InotifyInit()
	for end := time.Now().Add(deadline); err != nil && time.Now().Before(end); fd, err = unix.InotifyInit() {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Errorf("a polled tree holds an inotify instance: %v", err)
	}
	unix.Close(fd)
	run(t, w)
}

// TestMounts mounts a file system over root and unmounts it, which makes no event.
func TestMounts(t *testing.T) {
	if !again(t, own(syscall.CLONE_NEWNS)) {
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skip(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	sh.Run(t, "/", "mkdir "+root)
	mount := func(t *testing.T) {
		if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip(err)
		}
		sh.Run(t, root, "mkdir x; echo 1 >x/mounted.yaml")
	}
	unmount := func(t *testing.T) {
		err := unix.Unmount(root, 0)
		for limit := time.Now().Add(deadline); err == unix.EBUSY && time.Now().Before(limit); { // busy during a look
			err = unix.Unmount(root, 0)
		}
		if err != nil {
			t.Fatalf("the watch keeps the file system: %v", err)
		}
	}
	for _, poll := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(fmt.Sprint("poll ", poll), func(t *testing.T) {
			w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1, Poll: poll})
			w.poll = 5 * time.Millisecond
			run(t, w)
			for range 2 {
				for _, change := range []func(*testing.T){mount, unmount} {
					change(t)
					waitSignal(t, w)
					log.until(t, counts(root))
					// The looks during the mount may have dropped one event.
					log.again(t, root+"/x/a.yaml", func(try int) { sh.Run(t, root, fmt.Sprintf("mkdir -p x; echo %d >>x/a.yaml", try)) })
				}
			}
		})
	}
}

// TestUnreadable runs without the rights of root over files.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		// Only a thread with its children can drop rights. The thread ends with this goroutine, which never
		// unlocks it.
		runtime.LockOSThread()
		for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				t.Skip(err)
			}
		}
	}
	if !again(t, nil) {
		return
	}
	for _, poll := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(fmt.Sprint("poll ", poll), func(t *testing.T) {
			root := t.TempDir()
			sh.Run(t, root, "mkdir -p x/y z; echo 1 >x/y/a.yaml; echo 1 >b.yaml; echo 1 >c.yaml; chmod 0 c.yaml z")
			t.Cleanup(func() { sh.Run(t, root, "chmod -R u+rwX .") })
			w, log := newWatcher(t, root, Options{QuietPeriod: time.Millisecond, Rescan: -1, Poll: poll})
			run(t, w)
			for _, s := range []struct{ do, want string }{
				{"chmod 0 x", "x"},
				{"chmod 700 x", "x"},
				{"echo 2 >>x/y/a.yaml", "x/y/a.yaml"},
				{"chmod 0 x/y", "x/y"},
				{"chmod 700 x/y", "x/y"},
				{"echo 2 >>x/y/a.yaml", "x/y/a.yaml"},
				{"chmod 0 b.yaml", "b.yaml"},
				{"chmod 600 b.yaml", "b.yaml"},
				{"chmod 600 c.yaml", "c.yaml"}, // the file had this mode from the start
				{"chmod 700 z", "z"},
				{"echo 1 >z/a.yaml", "z/a.yaml"},
				{"umask 777; mkdir v; echo 1 >d.yaml", "d.yaml"},
				{"chmod 700 v", "v"},
				{"echo 1 >v/a.yaml", "v/a.yaml"},
				{"chmod 600 d.yaml", "d.yaml"},
			} {
				sh.Run(t, root, s.do)
				log.until(t, counts(filepath.Join(root, s.want)))
				waitSignal(t, w)
			}
		})
	}
}
