package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/render/publish"
)

// The trees of these tests have two groups of files. In each committed state, all files of a group have the
// same number. So a snapshot of half a state has an id that no whole state has.
const (
	groupSize = 25
	states    = 4 // of each group
)

// member returns a file of a group.
func member(group string, i, state int) (name, text string) {
	name = fmt.Sprintf("%s%02d.yaml", group, i)
	return name, fmt.Sprintf("\"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime\nname: %s%02d\nlayer: {state: %d}\n", group, i, state)
}

// writeGroup writes the files of a group into a folder.
func writeGroup(t *testing.T, dir, group string, state int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range groupSize {
		name, text := member(group, i, state)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wholes returns the snapshot ids of all whole states.
func wholes(t *testing.T) map[string]string {
	t.Helper()
	ids := make(map[string]string)
	for a := range states {
		for b := range states {
			dir := t.TempDir()
			src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
			writeGroup(t, src, "a", a)
			writeGroup(t, src, "b", b)
			if err := runCommand(t.Context(), newApp(new(bytes.Buffer), new(bytes.Buffer)), []string{"xdspub", "render", "--step-gap", "0s", "--out", out, src}); err != nil {
				t.Fatal(err)
			}
			m, err := publish.ReadManifest(out)
			if err != nil {
				t.Fatal(err)
			}
			ids[m.Snapshot] = fmt.Sprintf("a%d b%d", a, b)
		}
	}
	return ids
}

// outLog is an io.Writer that reads a log for the published snapshots.
type outLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *outLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

var isOut = regexp.MustCompile(`event=published snapshot=(\w+)`)

// ids returns the ids of the published snapshots, in their order.
func (l *outLog) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, m := range isOut.FindAllStringSubmatch(l.text.String(), -1) {
		list = append(list, m[1])
	}
	return list
}

func (l *outLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestNeverHalf changes a source tree all the time, as git and Kubernetes do, under a watch that reads all the
// time. The published snapshot is always a committed state, and in the end the last one.
func TestNeverHalf(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: needs git")
	}
	ids := wholes(t)
	for _, tt := range []struct {
		name string
		run  func(h *half, t *testing.T)
	}{
		{"checkout", (*half).checkouts}, {"rebase", (*half).rebase}, {"bisect", (*half).bisect},
		{"submodule", (*half).submodule}, {"worktree", (*half).worktree}, {"kubelet", (*half).kubelet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			h := &half{ids: ids, dir: dir, src: filepath.Join(dir, "src"), log: new(outLog)}
			tt.run(h, t)
		})
	}
}

// half is a watched source tree.
type half struct {
	ids      map[string]string
	dir, src string
	log      *outLog
}

// watched runs do while a watch publishes the tree. The last published state must be want.
func (h *half) watched(t *testing.T, want string, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- runCommand(ctx, newApp(h.log, h.log), []string{"xdspub", "watch", "--out", filepath.Join(h.dir, "out"),
			"--quiet-period", "1ms", "--step-gap", "0s", "--trim-delay", "0s", "--rescan", "20ms", h.src})
	}()
	h.until(t, "the first state", func(last string) bool { return last != "" })
	do()
	h.until(t, want, func(last string) bool { return last == want })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	list := h.log.ids()
	for i, id := range list {
		if h.ids[id] == "" {
			t.Errorf("snapshot %d, %s, is no state that was committed", i, id)
		}
	}
	t.Logf("%d snapshots, %d of them different", len(list), len(slices.Compact(slices.Sorted(slices.Values(list)))))
}

// until waits until is accepts the last published state. what describes the wait.
func (h *half) until(t *testing.T, what string, is func(last string) bool) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		list := h.log.ids()
		if last := append([]string{""}, list...)[len(list)]; is(h.ids[last]) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s is not out; the log:\n%s", what, h.log)
		}
	}
}

func (h *half) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "advice.detachedHead=false", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_EDITOR=true")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// commit commits a state of one or both groups, and returns its name.
func (h *half) commit(t *testing.T, repo string, groups map[string]int) string {
	t.Helper()
	for group, state := range groups {
		writeGroup(t, repo, group, state)
	}
	h.git(t, repo, "add", ".")
	h.git(t, repo, "commit", "-qm", fmt.Sprint(groups), "--allow-empty")
	return h.git(t, repo, "rev-parse", "HEAD")
}

func (h *half) repository(t *testing.T, dir string) string {
	t.Helper()
	h.git(t, h.dir, "init", "-q", "-b", "main", dir)
	return dir
}

func (h *half) history(t *testing.T, repo string) []string {
	t.Helper()
	var list []string
	for state := range states {
		list = append(list, h.commit(t, repo, map[string]int{"a": state, "b": states - 1 - state}))
	}
	return list
}

func (h *half) checkouts(t *testing.T) {
	commits := h.history(t, h.repository(t, h.src))
	h.watched(t, "a1 b2", func() { h.checkOut(t, h.src, commits, 1) })
}

// worktree tests a linked work tree, whose repository is elsewhere.
func (h *half) worktree(t *testing.T) {
	repo := h.repository(t, filepath.Join(h.dir, "repo"))
	commits := h.history(t, repo)
	h.git(t, repo, "worktree", "add", "-q", h.src, commits[0])
	h.watched(t, "a2 b1", func() {
		h.checkOut(t, h.src, commits, 2)
		h.git(t, repo, "worktree", "add", "-q", filepath.Join(h.dir, "another"), commits[3])
	})
}

// checkOut checks out the commits at random, and in the end the commit with the number last.
func (h *half) checkOut(t *testing.T, repo string, commits []string, last int) {
	t.Helper()
	for range 15 {
		h.git(t, repo, "checkout", "-q", commits[rand.IntN(len(commits))])
		rest()
	}
	h.git(t, repo, "checkout", "-q", commits[last])
}

// rebase tests git rebase: a branch with changes of one group moves from one change of the other group to the
// next.
func (h *half) rebase(t *testing.T) {
	repo := h.repository(t, h.src)
	h.commit(t, repo, map[string]int{"a": 0, "b": 0})
	for state := 1; state < states; state++ {
		h.commit(t, repo, map[string]int{"a": state})
	}
	h.git(t, repo, "checkout", "-q", "-b", "topic", "main~3")
	for state := 1; state < states; state++ {
		h.commit(t, repo, map[string]int{"b": state})
	}
	h.watched(t, "a3 b3", func() {
		for _, onto := range []string{"main~2", "main~3", "main~1", "main"} {
			h.git(t, repo, "rebase", "-q", "--onto", onto, "topic~3", "topic")
			rest()
		}
	})
}

func (h *half) bisect(t *testing.T) {
	repo := h.repository(t, h.src)
	var commits []string
	for n := range 16 {
		commits = append(commits, h.commit(t, repo, map[string]int{"a": n % states, "b": n / states}))
	}
	h.watched(t, "a3 b3", func() {
		for _, bad := range []int{13, 2, 8} {
			h.git(t, repo, "bisect", "start", commits[15], commits[0])
			h.git(t, repo, "bisect", "run", "sh", "-c", fmt.Sprintf("sleep 0.0$(($$ %% 7)); ! git merge-base --is-ancestor %s HEAD", commits[bad]))
			h.git(t, repo, "bisect", "reset")
			rest()
		}
	})
}

// submodule tests a tree with one of the groups in a submodule.
func (h *half) submodule(t *testing.T) {
	upstream := h.repository(t, filepath.Join(h.dir, "upstream"))
	var commits []string
	for state := range states {
		commits = append(commits, h.commit(t, upstream, map[string]int{"b": state}))
	}
	repo := h.repository(t, h.src)
	h.git(t, repo, "submodule", "--quiet", "add", upstream, "sub")
	var supers []string
	for state := range states {
		h.git(t, filepath.Join(repo, "sub"), "checkout", "-q", commits[state])
		supers = append(supers, h.commit(t, repo, map[string]int{"a": state}))
	}
	h.watched(t, "a1 b1", func() {
		for n := range 8 {
			h.git(t, repo, "checkout", "-q", supers[rand.IntN(states)])
			if n%3 > 0 {
				rest()
			}
			h.git(t, repo, "submodule", "--quiet", "update")
			rest()
		}
		h.git(t, repo, "checkout", "-q", "--recurse-submodules", supers[1])
	})
}

// kubelet tests a volume of Kubernetes: each file is a link through the link ..data, which turns. The old
// target of ..data is removed at once.
func (h *half) kubelet(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	last := ""
	write := func(n, a, b int) {
		t.Helper()
		folder := fmt.Sprintf("..2026_%04d", n)
		writeGroup(t, filepath.Join(h.src, folder), "a", a)
		writeGroup(t, filepath.Join(h.src, folder), "b", b)
		must(os.Symlink(folder, filepath.Join(h.src, "..data_tmp")))
		must(os.Rename(filepath.Join(h.src, "..data_tmp"), filepath.Join(h.src, "..data")))
		if last == "" {
			for _, group := range []string{"a", "b"} {
				for i := range groupSize {
					name, _ := member(group, i, 0)
					must(os.Symlink(filepath.Join("..data", name), filepath.Join(h.src, name)))
				}
			}
		} else {
			must(os.RemoveAll(filepath.Join(h.src, last)))
		}
		last = folder
	}
	write(0, 0, 0)
	h.watched(t, "a3 b0", func() {
		for n := 1; n < 100; n++ {
			write(n, rand.IntN(states), rand.IntN(states))
			rest()
		}
		write(100, 3, 0)
	})
}

// rest sleeps for a random time, which may be zero.
func rest() { time.Sleep(time.Duration(rand.IntN(3)*rand.IntN(40)) * time.Millisecond) }
