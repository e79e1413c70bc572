package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func write(path string) Plan { return Plan{Steps: []Step{{Name: "s", Write: []File{{Path: path}}}}} }

func remove(path string) Plan { return Plan{Steps: []Step{{Name: "s", Remove: []string{path}}}} }

func TestRefusedPlans(t *testing.T) {
	two := func(a, b string) Plan {
		return Plan{Steps: []Step{{Name: "a", Write: []File{{Path: a}}}, {Name: "b", Write: []File{{Path: b}}}}}
	}
	again := write("cds/cds.json")
	again.Steps[0].Remove = []string{"cds/cds.json"}
	twice := write("cds/cds.json")
	twice.Steps[0].Write = append(twice.Steps[0].Write, twice.Steps[0].Write...)
	for _, tt := range []struct {
		name string
		plan Plan
		want string
	}{
		{"absolute", write("/etc/passwd"), `"/etc/passwd": not a clean path`},
		{"parent", write("../cds/cds.json"), "not a clean path"},
		{"parent inside", write("eds/../../cds.json"), "not a clean path"},
		{"unclean", write("cds//cds.json"), "not a clean path"},
		{"dot", write("./cds/cds.json"), "not a clean path"},
		{"trailing slash", write("cds/"), "not a clean path"},
		{"empty", write(""), "not a clean path"},
		{"out itself", write("."), "needs a folder of its own"},
		{"nul", write("cds/cds\x00.json"), "not a clean path"},
		{"not UTF-8", write("cds/\xff.json"), "not a clean path"},
		{"private", write(".xdspub/lock"), ".xdspub is not for published files"},
		{"private by another case", write(".XdsPub/stage/x"), ".xdspub is not for published files"},
		{"like private", write(".xdspub2/x"), ".xdspub is not for published files"},
		{"no folder", write("cds.json"), "needs a folder of its own"},
		{"remove private", remove(".xdspub/manifest.json"), ".xdspub is not for published files"},
		{"remove parent", remove("../x"), "not a clean path"},
		{"twice in one step", twice, "named twice in one plan"},
		{"written and removed", again, "named twice in one plan"},
		{"one folder", two("xds/cds.json", "xds/lds.json"), "publish xds/lds.json: xds/cds.json is in the same folder"},
		{"file and folder", two("eds/web", "eds/web/eds.json"), "eds/web is a file in the same plan"},
		{"going nothing", Plan{Manifest: Manifest{Retired: []Retired{{}}}}, "one of cluster and file is needed"},
		{"going twice", Plan{Manifest: Manifest{Retired: []Retired{{Cluster: "a", File: "b"}}}}, "one of cluster and file is needed, not both"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := t.TempDir()
			d := mustOpen(t, out, osDisk{})
			_, err := d.Publish(context.Background(), tt.plan)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			checkPublished(t, out, nil)
			checkPrivate(t, out)
		})
	}
}

// TestBlocked puts obstacles in the way of the third step. Publish must find them before the first step.
func TestBlocked(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(out string) error
		plan func(p *Plan)
		want string
		is   error
	}{
		{
			name: "folder in place of the file",
			make: func(out string) error { return os.MkdirAll(filepath.Join(out, "rds/r/rds.json"), 0o755) },
			want: "publish rds/r/rds.json: rename OUT/rds/r/rds.json: is a directory: remove it, only a file of xdspub belongs here",
			is:   syscall.EISDIR,
		},
		{
			name: "folder in place of the file, in a folder of the wrong mode",
			make: func(out string) error { return os.MkdirAll(filepath.Join(out, "rds/r/rds.json"), 0o700) },
			want: "publish rds/r/rds.json: rename OUT/rds/r/rds.json: is a directory: remove it, only a file of xdspub belongs here",
			is:   syscall.EISDIR,
		},
		{
			name: "file in place of the folder",
			make: func(out string) error {
				return errors.Join(os.Mkdir(filepath.Join(out, "rds"), 0o755), os.WriteFile(filepath.Join(out, "rds/r"), nil, 0o644))
			},
			want: "publish rds/r/rds.json: open OUT/rds/r: not a directory: remove it, a directory of xdspub belongs here",
			is:   syscall.ENOTDIR,
		},
		{
			name: "file in place of the folder above",
			make: func(out string) error { return os.WriteFile(filepath.Join(out, "rds"), nil, 0o644) },
			want: "publish rds/r/rds.json: open OUT/rds: not a directory: remove it, a directory of xdspub belongs here",
			is:   syscall.ENOTDIR,
		},
		{
			name: "link to nothing in place of the folder",
			make: func(out string) error {
				return errors.Join(os.Mkdir(filepath.Join(out, "rds"), 0o755), os.Symlink("nowhere", filepath.Join(out, "rds/r")))
			},
			want: "publish rds/r/rds.json: open OUT/rds/r: a symbolic link: remove it, xdspub follows no links inside an output directory",
		},
		{
			name: "name too long",
			make: func(string) error { return nil },
			plan: func(p *Plan) { p.Steps[2].Write[0].Path = strings.Repeat("x", 300) + "/rds.json" },
			want: "file name too long",
			is:   syscall.ENAMETOOLONG,
		},
		{
			name: "folder in place of what goes",
			make: func(out string) error { return os.MkdirAll(filepath.Join(out, "eds/gone/eds.json"), 0o755) },
			plan: func(p *Plan) { p.Steps[2].Remove = []string{"eds/gone/eds.json"} },
			want: "remove eds/gone/eds.json: remove OUT/eds/gone/eds.json: is a directory: remove it, only a file of xdspub belongs here",
			is:   syscall.EISDIR,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			publishOnce(t, out, oldPlan())
			if err := tt.make(out); err != nil {
				t.Fatal(err)
			}
			before := published(t, out)
			p := newPlan()
			p.Steps[2].Write = []File{{Path: "rds/r/rds.json"}}
			if tt.plan != nil {
				tt.plan(&p)
			}
			res, err := mustOpen(t, out, osDisk{}).Publish(context.Background(), p)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), out, "OUT"), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v does not wrap %v", err, tt.is)
			}
			if len(res.Steps) > 0 {
				t.Errorf("moved %v", res.Steps)
			}
			checkPublished(t, out, before)
			checkPrivate(t, out)
		})
	}
}

func TestPending(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	pending := func(p Plan) []string {
		t.Helper()
		left, err := Pending(out, p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if left.Gap != p.Gap || left.Manifest.Snapshot != p.Manifest.Snapshot {
			t.Error("gap or manifest lost")
		}
		var names []string
		for _, s := range left.Steps {
			names = append(names, s.Name)
			for _, f := range s.Write {
				names = append(names, "+"+f.Path)
			}
			for _, name := range s.Remove {
				names = append(names, "-"+name)
			}
		}
		return names
	}
	if got := pending(oldPlan()); len(got) > 0 {
		t.Errorf("pending %v", got)
	}
	want := []string{
		"new", "+sds/mtls/sds.json", "+eds/api/eds.json",
		"clusters", "+cds/cds.json",
		"listeners", "+lds/lds.json", "-eds/old/eds.json",
	}
	if got := pending(newPlan()); !slices.Equal(got, want) {
		t.Errorf("pending %v, want %v", got, want)
	}
	if got := pending(remove("eds/never/eds.json")); len(got) > 0 {
		t.Errorf("pending %v", got)
	}

	at := func(name string) string { return filepath.Join(out, name) }
	for name, damage := range map[string]func() error{
		"sds/cert/sds.json": func() error { return os.Chmod(at("sds/cert/sds.json"), 0o644) },
		"eds/web/eds.json":  func() error { return os.Chmod(at("eds/web"), 0o700) },
		"eds/old/eds.json":  func() error { return os.WriteFile(at("eds/old/eds.json"), []byte("odd 1"), 0o644) },
		"cds/cds.json": func() error {
			return errors.Join(os.Rename(at("cds/cds.json"), at("cds/x")), os.Symlink("x", at("cds/cds.json")))
		},
		// A comparison that opened the pipe would wait for a writer for ever.
		"lds/lds.json": func() error {
			return errors.Join(os.Remove(at("lds/lds.json")), syscall.Mkfifo(at("lds/lds.json"), 0o644))
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if got := pending(oldPlan()); !slices.Equal(got, []string{"all", "+" + name}) {
			t.Errorf("pending %v, want %s", got, name)
		}
		publishOnce(t, out, oldPlan())
		if got := pending(oldPlan()); len(got) > 0 {
			t.Errorf("pending %v after a publish", got)
		}
	}
}

func TestPendingWithoutOut(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p := newPlan()
	left, err := Pending(out, p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Steps) != 3 || len(left.Steps[2].Write) != 2 || len(left.Steps[2].Remove) != 0 {
		t.Errorf("pending %+v", left.Steps)
	}
	if len(p.Steps[2].Remove) != 1 {
		t.Error("the plan itself was changed")
	}
	if m, err := ReadManifest(out); err != nil || m.Layout != 0 {
		t.Errorf("manifest %+v, %v", m, err)
	}
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Error("a look made the directory")
	}
}

// TestOnTheWay publishes a plan that writes a file several times. Publish makes only the writes after the
// published version.
func TestOnTheWay(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, osDisk{})
	version := func(text string) []File { return []File{{Path: "lds/lds.json", Data: []byte(text)}} }
	plan := Plan{Steps: []Step{{Name: "some", Write: version("1")}, {Name: "more", Write: version("2")}, {Name: "all", Write: version("3")}}}
	for _, c := range []struct{ before, want string }{{"0", "some more all"}, {"1", "more all"}, {"2", "all"}, {"3", ""}} {
		if _, err := d.Publish(context.Background(), Plan{Steps: []Step{{Name: "before", Write: version(c.before)}}}); err != nil {
			t.Fatal(err)
		}
		result, err := d.Publish(context.Background(), plan)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range result.Steps {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("over %s: steps %q, want %q", c.before, got, c.want)
		}
		data, err := os.ReadFile(filepath.Join(out, "lds/lds.json"))
		if err != nil || string(data) != "3" {
			t.Errorf("over %s: %q, %v", c.before, data, err)
		}
	}
}
