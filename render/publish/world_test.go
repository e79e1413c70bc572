package publish

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/tools/memdir"
)

// world is a scenario with the directory that it finds, and the states that may follow.
type world struct {
	scenario
	found   string // the directory that the scenario finds, to be copied
	folders map[string]fs.FileInfo
	record  Manifest
	drift   []string
	broken  string // the fault of the found files, by whole; empty for none
	// ways are the sequences of states that the scenario may go through. Two neighbouring states differ in the
	// files of one step, and each of these files may be as in either state.
	ways [][]files
	want files
}

// at makes the directory out, a copy of found.
func (w world) at(t *testing.T, out string) world {
	t.Helper()
	w.folders = map[string]fs.FileInfo{}
	err := filepath.WalkDir(w.found, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		to := out + strings.TrimPrefix(name, w.found)
		switch {
		case e.IsDir():
			if err := errors.Join(os.Mkdir(to, 0o700), os.Chmod(to, fi.Mode())); err != nil {
				return err
			}
			w.folders[to], err = os.Stat(to)
			return err
		case strings.HasSuffix(name, lockPath): // the lock is written to, so it is no hard link
			return os.WriteFile(to, nil, fi.Mode())
		}
		return os.Link(name, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// found makes the directory that the scenario finds.
func (s scenario) found(t *testing.T) world {
	t.Helper()
	out := memdir.New(t)
	for _, do := range s.before {
		if err := do(out); err != nil {
			t.Fatal(err)
		}
	}
	w := world{scenario: s, found: out}
	found := files(published(t, out))
	w.broken = found.whole()
	var err error
	if w.record, err = ReadManifest(out); err != nil {
		t.Fatal(err)
	}
	if w.drift, err = w.record.Drifted(out); err != nil {
		t.Fatal(err)
	}
	from := found
	if s.from != nil {
		from = files{}.withPlans(s.from)
	}
	forward, refused := []files{from}, -1
	if s.run == nil || s.from != nil {
		for i, step := range s.plan.Steps {
			forward = append(forward, forward[i].with(step))
			if len(step.Write) > 0 && step.Write[0].Version == s.refuse {
				refused = i + 1
			}
		}
	}
	w.want = files{}.withPlans(s.want)
	for _, name := range s.gone {
		delete(w.want, name)
	}
	for _, name := range s.stays {
		w.want.set(name, forward[len(forward)-1])
		if refused >= 0 {
			w.want.set(name, forward[refused])
		}
	}
	if refused >= 0 && s.snapshot != s.plan.Manifest.Snapshot || s.held == "" && s.last != "" && s.run == nil && w.record.Snapshot != "" {
		w.ways = append(w.ways, w.wayBack(forward, refused))
		forward = forward[:refused+1]
	}
	w.ways = append(w.ways, forward)
	return w
}

// wayBack returns the states from the refused step back to w.want. First the files come back that an
// interrupted change has removed. Then the files of this change go back, step by step. Then the files go that
// the interrupted change has brought.
func (w world) wayBack(forward []files, refused int) []files {
	now := maps.Clone(forward[refused])
	way := []files{maps.Clone(now)}
	for name := range w.want {
		if !w.moves(w.plan.Steps, name) {
			now[name] = w.want[name]
		}
	}
	way = append(way, maps.Clone(now))
	for i := refused - 1; i >= 0; i-- {
		s := w.plan.Steps[i]
		for _, f := range s.Write {
			to := w.want
			if w.moves(w.plan.Steps[:i], f.Path) {
				to = forward[i]
			}
			now.set(f.Path, to)
		}
		for _, name := range s.Remove {
			now.set(name, w.want)
		}
		way = append(way, maps.Clone(now))
	}
	return append(way, w.want)
}

// moves reports whether one of the steps writes or removes the file name.
func (world) moves(steps []Step, name string) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return slices.Contains(s.Remove, name) || slices.ContainsFunc(s.Write, func(f File) bool { return f.Path == name })
	})
}
