package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/envoytest"
)

// TestSoak edits a tree at random, in all ways in which programs change files, and with invalid saves, while a
// watch publishes the tree to an Envoy with traffic. From time to time, the edits pause. Then the published files
// are those of a cold render of the tree, Envoy runs them and has refused nothing, and the watch holds no more
// resources of the system than before.
//
// XDSPUB_SOAK is the length of the test, such as 3m (scripts/soak). XDSPUB_SOAK_SEED repeats the edits of a run,
// but not their times. The test does not run in parallel with others: its Envoy takes some 30 of the user's inotify
// instances.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	length, seed := dice(t, "XDSPUB_SOAK", 20*time.Second, rand.Uint64())
	t.Logf("again: XDSPUB_SOAK=%v XDSPUB_SOAK_SEED=%d scripts/soak", length, seed)

	s := newSoak(t, rand.New(rand.NewPCG(seed, 0)))
	fits := func(answer string) bool { return slices.Contains([]string{"200 blue", "200 green", "200 red"}, answer) }
	var stops []func() int
	for _, r := range []request{{port: s.ports["edge"]}, {port: s.ports["edge"], path: "/eds"}, {port: s.ports["scoped"], header: "x-tenant: a"}} {
		stops = append(stops, send(t, r, fits))
	}
	rounds := max(3, int(length/(20*time.Second)))
	var first usage
	for round := range rounds {
		end := time.Now().Add(length / time.Duration(rounds))
		for time.Now().Before(end) {
			s.step()
			s.pause(s.pick(0, 0, 5, 20, 50, 150, 400))
		}
		s.rest()
		s.refuses(round)
		if round == 0 {
			first = usageOf(t, s.watch)
		}
	}
	sent := 0
	for _, stop := range stops {
		sent += stop()
	}
	s.grows(first)
	t.Logf("%d edits, %d publishes, %d requests", s.steps, strings.Count(s.watch.Log(), "event=published "), sent)
}

// dice returns the length and the seed of a random test. If the environment variable is set, it is the length, such
// as 3m, and the seed is random. If XDSPUB_SOAK_SEED is set, it is the seed.
func dice(t *testing.T, variable string, length time.Duration, seed uint64) (time.Duration, uint64) {
	t.Helper()
	var err error
	if text := os.Getenv(variable); text != "" {
		seed = rand.Uint64()
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("XDSPUB_SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return length, seed
}

// rest pauses the edits until the published files are those of a cold render of the tree, and Envoy runs them.
func (s *soak) rest() {
	t := s.t
	t.Helper()
	if s.bad != "" {
		t.Logf("heal %s", s.heal())
	}
	real, err := filepath.EvalSymlinks(s.out)
	s.must(err)
	cold := filepath.Join(t.TempDir(), "cold")
	args := append([]string{"render", "--envoy-path", real}, s.args...)
	args[slices.Index(args, "--out")+1] = cold
	if _, stderr, exit := xdspub(t, append(args, s.src)...); exit != 0 {
		t.Fatalf("the tree is not what this test meant it to be: exit status %d\n%s", exit, stderr)
	}
	want := s.snapshot(cold)
	envoytest.Eventually(t, patience, "what is out is what a cold render makes", func() (bool, string) {
		diff := cmp.Diff(want, s.snapshot(s.out))
		return diff == "", "(-cold +out)\n" + diff
	})
	s.took(t, s.unread()...)
	if runtime.GOOS == "linux" {
		envoytest.Eventually(t, patience, "Envoy holds an inotify instance for each file that it reads", func() (bool, string) {
			got := s.envoy.InotifyInstances(t)
			unread := len(s.unread())
			return got == len(want)-unread, fmt.Sprintf("%d for %d files, %d of them unread", got, len(want), unread)
		})
	}
}

// snapshot returns the published files.
func (s *soak) snapshot(out string) map[string]string {
	files := map[string]string{}
	s.must(fs.WalkDir(os.DirFS(out), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".xdspub":
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		data, err := os.ReadFile(filepath.Join(out, name))
		if errors.Is(err, fs.ErrNotExist) { // trimmed meanwhile
			return nil
		}
		files[name] = string(data)
		return err
	}))
	return files
}

// refuses saves an invalid file, and fails the test if a published file changes.
func (s *soak) refuses(round int) {
	s.t.Helper()
	before := s.published(s.t)
	unknown := fmt.Sprintf("unknown-%d", round)
	s.write(s.t, "bad.yaml", routes("bad", unknown))
	s.watch.WaitLog(s.t, unknown)
	s.watch.WaitLog(s.t, "event=source-invalid ")
	s.remove(s.t, "bad.yaml")
	s.watch.WaitLog(s.t, "event=source-valid")
	if diff := cmp.Diff(before, s.published(s.t)); diff != "" {
		s.t.Errorf("refused, and something was touched (-before +after):\n%s", diff)
	}
}

// usage has the resources of the system that a process holds.
type usage struct{ descriptors, threads, memory int }

var procStatus = regexp.MustCompile(`(?m)^(VmRSS|Threads):\s*(\d+)`)

// usageOf returns the usage of a process; zero on systems other than Linux.
func usageOf(t *testing.T, p *process) usage {
	t.Helper()
	if runtime.GOOS != "linux" {
		return usage{}
	}
	dir := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	u := usage{descriptors: len(open)}
	for _, m := range procStatus.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if m[1] == "Threads" {
			u.threads = n
		} else {
			u.memory = n << 10
		}
	}
	return u
}

// grows compares the usage of the watch with its usage after the first round. The number of descriptors must be the
// same, except for some that are open for a moment: a leak of one in each reconcile would be hundreds. Go keeps a
// thread for each file operation that ever blocked at the same time. The heap may double before it is collected,
// and the race detector doubles it again.
func (s *soak) grows(first usage) {
	s.t.Helper()
	envoytest.Eventually(s.t, patience, "the watch holds no more than at first", func() (bool, string) {
		now := usageOf(s.t, s.watch)
		return now.descriptors <= first.descriptors && now.threads <= first.threads+16 && now.memory <= 2*first.memory+64<<20, fmt.Sprintf("%+v, at first %+v", now, first)
	})
	s.t.Logf("at first %+v, in the end %+v", first, usageOf(s.t, s.watch))
}
