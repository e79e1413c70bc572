package hook_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xdspub/event"
	"xdspub/observe/hook"
)

// noProcess fails if a process still runs, or is a zombie.
func noProcess(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprint("the end of process ", pid), func() bool {
			stat := read(fmt.Sprintf("/proc/%d/stat", pid))
			return stat == "" || strings.Contains(stat, ") Z ") && !isOurs(stat)
		})
	}
}

// isOurs reports whether a line of /proc/PID/stat is of a child of this process.
func isOurs(stat string) bool {
	_, rest, _ := strings.Cut(stat, ") ")
	fields := strings.Fields(rest)
	return len(fields) > 1 && fields[1] == fmt.Sprint(unix.Getpid())
}

// TestZombies: the first process of a container gets the children of ended programs, and leaves none of them as a
// zombie.
func TestZombies(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	file := filepath.Join(t.TempDir(), "pids")
	w := start(t, hook.Options{Times: quick, Commands: command(t, `sh -c '(sleep 1000 & echo $! >>"$0"); (sleep 0.01 & echo $! >>"$0"); sleep 0.05' `+file)})
	for range 5 {
		w.log(event.SourceValid{})
	}
	w.hooks.Close()
	for _, pid := range pids(t, file, 10) {
		if stat := read(fmt.Sprintf("/proc/%d/stat", pid)); stat != "" {
			t.Errorf("a process is left: %s", stat)
		}
	}
}
