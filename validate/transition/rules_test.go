package transition_test

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
	"xdspub/diag"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/certs"
	"xdspub/validate/transition"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// TestRules judges the examples of each rule, testdata/<code>.txtar, by files and by streams. The folders bad… and
// good… of an archive are changes. Each has the source trees that are published one after the other: old, sometimes
// mid, and new. A comment # want "regexp" must stand in a new tree on each line with a finding of the rule, and on
// no other line. The regexp is matched against "severity: message; help: …". A comment # want streams counts for
// streams only. A change with a finding about removed resources has the regexp in a file want. No other rule may
// find anything; guards run for their own examples only. e2e.TestTransitions shows Envoy's reaction to each change; its
// message is in the file envoy.
func TestRules(t *testing.T) {
	for _, rule := range transition.Rules {
		t.Run(rule.Code, func(t *testing.T) {
			kinds := make(map[string]bool)
			for _, c := range changes(t, rule.Code) {
				kinds[strings.TrimRight(c.name, "0123456789")] = true
				t.Run(c.name, func(t *testing.T) { c.judge(t, rule) })
			}
			for _, kind := range []string{"bad", "good"} {
				if !kinds[kind] {
					t.Errorf("no %s example", kind)
				}
			}
		})
	}
}

// change is one change of an archive.
type change struct {
	name  string
	trees []string // the directories of the source trees, in order
	want  string   // a regexp for the finding about removed resources; empty for none
	text  map[string]string
}

// changes writes the changes of an archive to directories.
func changes(t *testing.T, code string) []*change {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", code+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var list []*change
	for _, f := range archive.Files {
		name, rest, _ := strings.Cut(f.Name, "/")
		tree, file, isTree := strings.Cut(rest, "/")
		i := slices.IndexFunc(list, func(c *change) bool { return c.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, &change{name: name, text: make(map[string]string)})
		}
		if !isTree {
			if rest == "want" {
				list[i].want = strings.TrimSpace(string(f.Data))
			}
			continue
		}
		text, err := certs.Expand(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, name, tree)
		if !slices.Contains(list[i].trees, at) {
			list[i].trees = append(list[i].trees, at)
		}
		list[i].text[filepath.Join(at, file)] = string(text)
	}
	return list
}

// judge publishes all trees but the last. It compares the findings about the change to the last tree with the
// wanted findings.
func (c *change) judge(t *testing.T, rule *transition.Rule) {
	out := filepath.Join(t.TempDir(), "out")
	for name, text := range c.text {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var guard *transition.Guard
	if rule.Guards {
		guard = &transition.Guard{MaxRemoval: 50}
	}
	var served *xds.Snapshot
	for i, tree := range c.trees {
		o := pipeline.Options{
			Source: check.Options{Path: tree}, Out: out, Format: render.JSON, Endpoints: planner.EndpointsAuto, InotifyBudget: 120,
		}
		p := pipeline.New(o)
		p.Guard(guard)
		checked, err := check.New(o.Source).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !checked.Accepted() {
			t.Fatalf("%s is not valid: %v", tree, checked.Diagnostics)
		}
		plan, list, err := p.Plan(t.Context(), checked.Snapshot, certs.Now)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(c.trees)-1 {
			c.compare(t, rule.Code, list, `# want "`)
			list, err = transition.Transitions(transition.Served{Snapshot: served}, checked.Snapshot, transition.Options{Guard: guard, Source: tree})
			if err != nil {
				t.Fatal(err)
			}
			c.compare(t, rule.Code, list, `# want "`, `# want streams "`)
			return
		}
		served = checked.Snapshot
		if len(list) > 0 {
			t.Fatalf("%s: %v", tree, list)
		}
		dir, err := publish.Open(out, publish.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Publish(context.Background(), dir, plan)
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (c *change) compare(t *testing.T, code string, list diag.List, comments ...string) {
	t.Helper()
	wants := c.wants(t, comments)
	for _, d := range list {
		at := fmt.Sprintf("%s:%d", d.File, d.Line)
		text := fmt.Sprintf("%s: %s; help: %s", d.Severity, d.Message, d.Help)
		want := wants[at]
		if d.Code != code || want == nil || !want.MatchString(text) {
			t.Errorf("%s: unwanted: %s [%s]", at, text, d.Code)
			continue
		}
		delete(wants, at)
	}
	for at, want := range wants {
		t.Errorf("%s: no finding that matches %q", at, want)
	}
}

// wants returns the findings that the comments of a tree want, by file:line.
func (c *change) wants(t *testing.T, comments []string) map[string]*regexp.Regexp {
	t.Helper()
	wants := make(map[string]*regexp.Regexp)
	if c.want != "" {
		wants[c.trees[len(c.trees)-1]+":0"] = regexp.MustCompile(c.want)
	}
	for name, text := range c.text {
		for i, line := range strings.Split(text, "\n") {
			for _, comment := range comments {
				_, quoted, ok := strings.Cut(line, comment)
				if !ok {
					continue
				}
				want, err := strconv.Unquote(`"` + quoted)
				if err != nil {
					t.Fatalf("%s:%d: %v", name, i+1, err)
				}
				wants[fmt.Sprintf("%s:%d", name, i+1)] = regexp.MustCompile(want)
			}
		}
	}
	streams := slices.ContainsFunc(slices.Collect(maps.Values(c.text)), func(text string) bool { return strings.Contains(text, "# want streams ") })
	if bad := strings.HasPrefix(c.name, "bad") && (len(comments) > 1 || !streams); bad != (len(wants) > 0) {
		t.Errorf("%d findings are wanted", len(wants))
	}
	return wants
}

// TestRulesAreSound: the rules are sorted, and each has examples and a Doc with a summary and a reason.
func TestRulesAreSound(t *testing.T) {
	var codes []string
	for _, r := range transition.Rules {
		codes = append(codes, r.Code)
		summary, reason, _ := strings.Cut(r.Doc, "\n\n")
		if strings.Contains(summary, "\n") || !strings.HasSuffix(summary, ".") || reason == "" {
			t.Errorf("%s: Doc needs a summary line, an empty line and a reason", r.Code)
		}
		if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`).MatchString(r.Code) {
			t.Errorf("%s is not kebab-case", r.Code)
		}
	}
	if !slices.IsSorted(codes) {
		t.Errorf("not sorted: %v", codes)
	}
	archives, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		if !slices.Contains(codes, strings.TrimSuffix(filepath.Base(name), ".txtar")) {
			t.Errorf("%s: no such rule", name)
		}
	}
}
