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

// world is what a scenario finds, and where it may lead.
type world struct {
	scenario
	found   string // a directory as it is found, to be copied
	folders map[string]fs.FileInfo
	record  Manifest
	drift   []string
	broken  string // by hand, before
	// ways are the states that it may go through: of two that follow each other, the
	// files of one step differ, and any of them may be out.
	ways [][]files
	want files
}

// at makes the directory out as the scenario finds it.
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
		case strings.HasSuffix(name, lockPath): // which is written to
			return os.WriteFile(to, nil, fi.Mode())
		}
		return os.Link(name, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// found makes a directory as the scenario finds it.
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

// wayBack returns the states from the refused step back to what is wanted: first what
// an interrupted change has taken away comes back, then step by step what this one
// moved, then what that one brought goes.
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
