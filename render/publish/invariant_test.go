package publish

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files are the mode and the bytes of published files, by path.
type files map[string]string

func (f files) with(steps ...Step) files {
	out := maps.Clone(f)
	if out == nil {
		out = files{}
	}
	for _, s := range steps {
		for _, w := range s.Write {
			out[w.Path] = w.mode().String() + " " + string(w.Data)
		}
		for _, name := range s.Remove {
			delete(out, name)
		}
	}
	return out
}

func (f files) withPlans(plans []Plan) files {
	for _, p := range plans {
		f = f.with(p.Steps...)
	}
	return f
}

func (f files) set(name string, to files) {
	if has(to, name) {
		f[name] = to[name]
	} else {
		delete(f, name)
	}
}

func has(f map[string]string, name string) bool { _, ok := f[name]; return ok }

// between reports whether each file of f is as in a or as in b.
func (f files) between(a, b files) bool {
	for _, name := range slices.Concat(slices.Collect(maps.Keys(f)), slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
		asA := f[name] == a[name] && has(f, name) == has(a, name)
		asB := f[name] == b[name] && has(f, name) == has(b, name)
		if !asA && !asB {
			return false
		}
	}
	return true
}

// whole returns a name in f that leads nowhere, or "". A route configuration that no listener names may lack
// its clusters.
func (f files) whole() string {
	clusters := map[string]bool{}
	for line := range strings.Lines(f["cds/cds.json"]) {
		if c, ok := strings.CutPrefix(strings.TrimSpace(line), "+ "); ok {
			clusters[c] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		for line := range strings.Lines(f[name]) {
			line = strings.TrimSpace(line)
			if to, ok := strings.CutPrefix(line, "> "); ok && !has(f, to) {
				return fmt.Sprintf("%s names the file %s", name, to)
			}
			if to, ok := strings.CutPrefix(line, "@ "); ok && !clusters[to] && strings.Contains(f["lds/lds.json"], "> "+name) {
				return fmt.Sprintf("%s names the cluster %s", name, to)
			}
		}
	}
	return ""
}

// goes returns a published file that names a file that m has as retired since some time, or "". A cluster that
// is itself retired may name such a file.
func (f files) goes(m Manifest) string {
	since, going := map[string]bool{}, map[string]bool{}
	for _, g := range m.Retired {
		going[g.Cluster] = true
		since[g.File] = !g.Since.IsZero()
	}
	for _, name := range []string{"cds/cds.json", "lds/lds.json"} {
		cluster := ""
		for line := range strings.Lines(f[name]) {
			line = strings.TrimSpace(line)
			if c, ok := strings.CutPrefix(line, "+ "); ok {
				cluster = c
			}
			if to, ok := strings.CutPrefix(line, "> "); ok && since[to] && (cluster == "" || !going[cluster]) {
				return fmt.Sprintf("%s names %s", name, to)
			}
		}
	}
	return ""
}

// check checks what must be true at any moment of the scenario, and returns the published files.
func (w world) check(t *testing.T, out string) files {
	t.Helper()
	is := files(published(t, out))
	onWay := slices.ContainsFunc(w.ways, func(way []files) bool {
		for i := range way {
			if is.between(way[max(i-1, 0)], way[i]) {
				return true
			}
		}
		return false
	})
	if !onWay {
		t.Errorf("out is %v, which is on no way of %v", is, w.ways)
	}
	if broken := is.whole(); broken != "" && broken != w.broken {
		t.Errorf("%s, which is not there", broken)
	}
	for name, was := range w.folders {
		if now, err := os.Stat(name); err != nil || !os.SameFile(was, now) {
			t.Errorf("folder %s was replaced: %v", name, err)
		}
	}
	m, err := ReadManifest(out)
	if err != nil {
		t.Error(err)
	}
	if named := is.goes(m); named != "" {
		t.Errorf("%s, which the record says to go: %+v", named, m.Retired)
	}
	to := w.plan.Manifest.Snapshot
	if m.Snapshot != w.record.Snapshot && m.Snapshot != to && m.Snapshot != w.snapshot {
		t.Errorf("the record says %q", m.Snapshot)
	}
	last := w.ways[len(w.ways)-1]
	if m.Snapshot == to && w.record.Snapshot != to && !maps.Equal(is, last[len(last)-1]) {
		t.Errorf("the record says that all is out, and there is %v", is)
	}
	in, err := ReadIntent(out)
	if err != nil {
		t.Error(err)
	}
	w.checkUndo(t, out, in)
	drift, err := m.Drifted(out)
	if err != nil {
		t.Error(err)
	}
	moved := in.paths()
	drift = slices.DeleteFunc(drift, func(name string) bool {
		return in != nil && (moved[name] || w.moves(w.plan.Steps, name)) || slices.Contains(w.drift, name) || slices.Contains(w.drifted, name)
	})
	if len(drift) > 0 {
		t.Errorf("drifted: %v", drift)
	}
	return is
}

// checkUndo checks that the saved files of the intent exist and are unchanged.
func (w world) checkUndo(t *testing.T, out string, in *Intent) {
	t.Helper()
	for name := range in.needs() {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(out, undoPath, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range in.Steps {
			for _, f := range s.Files {
				if f.Saved == name && f.Sum != sum(data) {
					t.Errorf("saved of %s is %q", f.Path, data)
				}
			}
		}
	}
}

// checkEnd checks what must be true at the end of the scenario.
func (w world) checkEnd(t *testing.T, out string) {
	t.Helper()
	is := w.check(t, out)
	want := maps.Clone(w.want)
	for _, name := range w.may {
		want.set(name, is)
	}
	if !maps.Equal(is, want) {
		t.Errorf("in the end %v, want %v", is, want)
	}
	for name, data := range is {
		mode := fs.FileMode(0o755)
		if strings.HasPrefix(data, "-rw-r----- ") {
			mode = 0o750
		}
		if fi, err := os.Stat(filepath.Join(out, path.Dir(name))); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("folder of %s: %v, %v, want %v", name, fi.Mode(), err, mode)
		}
	}
	checkPrivate(t, out)
	for _, name := range []string{intentPath, undoPath + "/*"} {
		if left, err := filepath.Glob(filepath.Join(out, name)); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
	m, err := ReadManifest(out)
	if err != nil || m.Snapshot != w.snapshot {
		t.Errorf("the record says %q, %v, want %q", m.Snapshot, err, w.snapshot)
	}
	if drift, err := m.Drifted(out); err != nil || !slices.Equal(drift, w.drifted) {
		t.Errorf("drifted %v, %v, want %v", drift, err, w.drifted)
	}
	r, err := ReadRefused(out)
	if err != nil {
		t.Error(err)
	}
	var held []string
	for _, h := range r.Held {
		held = append(held, h.Snapshot)
	}
	if strings.Join(held, " ") != w.held {
		t.Errorf("held %q, want %q", held, w.held)
	}
	said := ""
	if r.Last != nil {
		said = r.Last.Findings[0].Message
	}
	if said != w.last {
		t.Errorf("the last refusal says %q, want %q", said, w.last)
	}
}

// checkHalfway checks what must be true at any moment between oldPlan and newPlan. Each file is the old file or
// the new file, by mode and bytes. The published steps are a prefix of the plan. The record is true.
func checkHalfway(t *testing.T, out string) {
	t.Helper()
	got := published(t, out)
	out1, out2 := 0, 0 // of the files that change: still old, already new
	steps := [][]string{
		{"sds/mtls/sds.json", "eds/api/eds.json"},
		{"cds/cds.json"},
		{"lds/lds.json", "eds/old/eds.json"},
	}
	begun := true // whether the step before is published whole
	for _, step := range steps {
		whole := true
		for _, name := range step {
			switch is, ok := got[name]; {
			case is == newFiles[name] && ok == has(newFiles, name):
				out2++
				if !begun {
					t.Errorf("%s is out before the step before it", name)
				}
			case is == oldFiles[name] && ok == has(oldFiles, name):
				out1++
				whole = false
			default:
				t.Errorf("%s is %q, neither old nor new", name, is)
			}
			delete(got, name)
		}
		begun = begun && whole
	}
	unchanged := map[string]string{
		"sds/cert/sds.json": oldFiles["sds/cert/sds.json"],
		"eds/web/eds.json":  oldFiles["eds/web/eds.json"],
	}
	if !maps.Equal(got, unchanged) {
		t.Errorf("and %v, want %v", got, unchanged)
	}
	m, err := ReadManifest(out)
	if err != nil {
		t.Error(err)
	}
	if m.Snapshot == "s2" && out1 > 0 || m.Snapshot != "s1" && m.Snapshot != "s2" {
		t.Errorf("the record says %q with %d files left", m.Snapshot, out1)
	}
	if out2 > 0 && len(m.Retired) != 1 {
		t.Errorf("something moved, and the record says going %v", m.Retired)
	}
}
