package fixes_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/check"
	"xdspub/check/fixes"
	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/tools/fixing"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// TestGolden makes the fixes of all golden cases of findings: the examples of the rules, and the cases of the loader.
// A case has a finding of each code that has fixes.
func TestGolden(t *testing.T) {
	examples, err := filepath.Glob("../../validate/rules/*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Glob("../../source/load/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[bool]int{}
	for _, path := range slices.Concat(examples, cases) {
		for _, unsafe := range []bool{false, true} {
			for _, c := range goldens(t, path) {
				t.Run(fmt.Sprintf("%s/%s/unsafe=%v", c.code, c.name, unsafe), func(t *testing.T) {
					tried[unsafe] += c.test(t, unsafe)
				})
			}
		}
	}
	t.Logf("%d safe fixes, %d fixes", tried[false], tried[true])
	if !testing.Short() && (tried[false] < 30 || tried[true] < 60) {
		t.Errorf("only %d safe fixes, %d fixes", tried[false], tried[true])
	}
}

// golden is a source tree or a bootstrap with findings.
type golden struct {
	code, name        string
	files             map[string][]byte // by the path below the folder of the case
	ofRule, bootstrap bool
	// subscribed means that each file is a file that an Envoy subscribes to for clusters.
	subscribed bool
	ignore     []string
	rules      check.Rules
}

// goldens returns the cases in an archive. The form of the archives is described at rules.TestRules and
// load.TestGolden.
func goldens(t *testing.T, path string) (list []golden) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	code := strings.TrimSuffix(filepath.Base(path), ".txtar")
	all := check.Rules{}
	for _, r := range rules.All {
		if r.OptIn && r.Code == code {
			all.Enable = []string{code}
		}
	}
	if name, ok := strings.CutPrefix(string(archive.Comment), "envoy-version: "); ok {
		all.Envoy = envoyapi.Named(strings.TrimSpace(name))
	}
	trees := make(map[string]golden)
	ofRule := strings.Contains(path, "validate/rules")
	for _, f := range archive.Files {
		tree, name := ".", f.Name
		if ofRule {
			if tree, name, _ = strings.Cut(f.Name, "/"); name == "" {
				continue // bootstrap.yaml
			}
		}
		g, known := trees[tree]
		if !known {
			g = golden{code: code, name: tree, ofRule: ofRule, files: make(map[string][]byte), rules: all}
		}
		switch {
		case ofRule:
			g.bootstrap = g.bootstrap || name == "boot.yaml"
			if g.files[name], err = certs.Expand(f.Data); err != nil {
				t.Fatal(err)
			}
		case name == "resources", name == "want":
		case name == "ignore":
			g.ignore = strings.Fields(string(f.Data))
		case name == "subscribed":
			g.subscribed = true
		default:
			name, quoted := strings.CutSuffix(name, ".quoted")
			g.files[name] = f.Data
			if quoted {
				g.files[name] = unquoted(t, f.Data)
			}
		}
		trees[tree] = g
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		list = append(list, trees[name])
	}
	return list
}

func unquoted(t *testing.T, quoted []byte) (data []byte) {
	t.Helper()
	for line := range strings.Lines(string(quoted)) {
		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, text...)
	}
	return data
}

// write writes the files of the case into a new folder.
func (g *golden) write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range g.files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// judge judges the files in dir, or the texts instead of some of them.
func (g *golden) judge(t *testing.T, dir string, texts map[string][]byte) *check.Result {
	t.Helper()
	var r *check.Result
	var err error
	switch {
	case g.bootstrap:
		o := check.BootstrapOptions{Rules: g.rules, Path: filepath.Join(dir, "boot.yaml"), Root: dir, Overlay: texts}
		o.Disable = []string{"missing-path"}
		r, err = check.Bootstrap(context.Background(), o)
	case g.subscribed: // like the case of the loader, without the findings of rules
		r = &check.Result{}
		for _, name := range slices.Sorted(maps.Keys(g.files)) {
			loaded, e := load.Subscribed(filepath.Join(dir, name), xds.Cluster, nil, load.NewOverlay(texts))
			if e != nil {
				t.Fatal(e)
			}
			r.Diagnostics = append(r.Diagnostics, loaded.Diagnostics...)
		}
	case !g.ofRule: // also without
		loaded, e := load.New(load.Options{Ignore: g.ignore, Overlay: texts}).Load(context.Background(), dir)
		if e != nil {
			t.Fatal(e)
		}
		r = &check.Result{Diagnostics: loaded.Diagnostics}
	default:
		r, err = check.Once(context.Background(), check.Options{Rules: g.rules, Path: dir, Overlay: texts})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fix makes the fixes of the files in dir.
func (g *golden) fix(t *testing.T, dir string, unsafe bool) (made int, last *check.Result) {
	t.Helper()
	run := fixes.New(unsafe)
	defer run.Close()
	last, err := run.Fix(g.judge(t, dir, nil), fixes.Scope{Root: dir}, func() (*check.Result, error) { return g.judge(t, dir, run.Texts()), nil })
	if err != nil {
		t.Fatal(err)
	}
	if run.Unfinished() || len(run.Refused()) > 0 {
		t.Errorf("unfinished: %v; refused: %v", run.Unfinished(), run.Refused())
	}
	if err := run.Write(); err != nil {
		t.Fatal(err)
	}
	made, _ = run.Made()
	return made, last
}

// test makes the fixes of the case, and returns their number.
func (g *golden) test(t *testing.T, unsafe bool) (made int) {
	dir := g.write(t)
	found := g.judge(t, dir, nil).Diagnostics
	made, last := g.fix(t, dir, unsafe)
	if made == 0 {
		return 0
	}
	after := g.judge(t, dir, nil).Diagnostics
	if got, want := text(dir, after), text(dir, last.Diagnostics); got != want {
		t.Errorf("the findings in memory are not those on disk:\n%s\nwant\n%s", got, want)
	}
	for _, d := range after {
		if i := fixable(d, unsafe); i >= 0 {
			t.Errorf("%s is left, with the fix %q", d, d.Fixes[i].Title)
		}
		if d.Severity == diag.Error && count(found, d) < count(after, d) && !(unsafe && uncovered[key(dir, d)]) {
			t.Errorf("a new error: %q", key(dir, d))
		}
	}
	want := g.oneByOne(t, unsafe)
	for name, before := range g.files {
		now := read(t, filepath.Join(dir, name))
		if now != want[name] {
			t.Errorf("%s is\n%s\nwant, as by one fix after the other:\n%s", name, now, want[name])
		}
		if got, want := comments(now), comments(string(before)); got != want {
			t.Errorf("%s has the comments\n%s\nwant\n%s", name, got, want)
		}
	}
	if again, _ := g.fix(t, dir, unsafe); again != 0 {
		t.Errorf("the second run makes %d fixes", again)
	}
	for name := range g.files {
		if now := read(t, filepath.Join(dir, name)); now != want[name] {
			t.Errorf("the second run changes %s", name)
		}
	}
	return made
}

// oneByOne makes the same fixes one after the other, by other code, and returns the texts of the files.
func (g *golden) oneByOne(t *testing.T, unsafe bool) map[string]string {
	t.Helper()
	dir := g.write(t)
	for range 1000 {
		list := g.judge(t, dir, nil).Diagnostics
		i := slices.IndexFunc(list, func(d diag.Diagnostic) bool { return fixable(d, unsafe) >= 0 })
		if i < 0 {
			texts := make(map[string]string)
			for name := range g.files {
				texts[name] = read(t, filepath.Join(dir, name))
			}
			return texts
		}
		fixing.Apply(t, list[i].Fixes[fixable(list[i], unsafe)])
	}
	t.Fatal("no end")
	return nil
}

// fixable returns the index of the fix that is made, or -1.
func fixable(d diag.Diagnostic, unsafe bool) int {
	return slices.IndexFunc(d.Fixes, func(f diag.Fix) bool { return unsafe || f.Safe })
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// aComment matches a comment of YAML or of a text proto.
var aComment = regexp.MustCompile(`(?m)(?:^|\s)#.*`)

// comments returns the comments of a text, without the header of a text proto, which names its message.
func comments(text string) string {
	list := slices.DeleteFunc(aComment.FindAllString(text, -1), func(c string) bool { return strings.Contains(c, "# proto-message:") })
	return strings.Join(list, "\n")
}

func text(dir string, list diag.List) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintln(&b, strings.ReplaceAll(d.String(), dir+"/", ""))
	}
	return b.String()
}

func key(dir string, d diag.Diagnostic) string {
	return strings.ReplaceAll(d.String(), dir+"/", "")
}

// count counts the findings of the same code, message and file.
func count(list diag.List, d diag.Diagnostic) (n int) {
	for _, other := range list {
		if other.Code == d.Code && other.Message == d.Message && other.File == d.File {
			n++
		}
	}
	return n
}

// uncovered are errors that unsafe fixes uncover: the mistake hid them. Safe fixes of the cases uncover none.
var uncovered = map[string]bool{
	`listener.yaml:26:11: error: max_request_bytes is required and must not be nil. [field-constraint]`: true,
	`any.yaml:5:5: error: unknown field "value" [unknown-field]`:                                        true,
	`hosts.yaml:6:9: error: virtual host "routes/b" belongs to route configuration "routes", which has no vhds for this tree ` +
		`[unresolved-reference/virtual-host]`: true,
}
