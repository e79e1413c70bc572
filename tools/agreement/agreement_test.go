// Package agreement has the test that xdspub validate and the real Envoy agree.
//
// testdata/cases has pairs of directories, good and bad, which an Envoy with path subscriptions reads. A case
// begins with the reaction of Envoy 1.40.0 when bad was renamed over a running good: the outcome, Envoy's message,
// and the answers to requests. The test judges each side as `xdspub validate boot.yaml` does. testdata/findings.txt
// has each finding with its line, and docs/evidence/agreement.md the sums.
package agreement

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sync/errgroup"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/tools/fixing"
)

var update = flag.Bool("update", false, "rewrite testdata/findings.txt and docs/evidence/agreement.md, and fail")

// bootstrap is the bootstrap of cases without a bootstrap.
const bootstrap = `admin: {address: {socket_address: {address: 127.0.0.1, port_value: 29901}}}
node: {id: node1, cluster: clus1}
dynamic_resources:
  cds_config: {initial_fetch_timeout: 2s, path_config_source: {path: xds/cds.yaml}}
  lds_config: {initial_fetch_timeout: 2s, path_config_source: {path: xds/lds.yaml}}
`

// testCase is one file of testdata/cases.
type testCase struct {
	name    string
	outcome string // of bad/
	words   string // of Envoy
	sides   map[string][]txtar.File
	boot    []byte

	found map[string]findings // by side
}

// findings is the result of validate for one side.
type findings struct {
	errors, warnings int
	text             string // each finding with its place and its line
}

func TestAgreement(t *testing.T) {
	certs := t.TempDir()
	certificates(t, certs)
	cases := read(t)
	var judges errgroup.Group // if t.Fatal ends a goroutine, another takes its place
	judges.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	for _, c := range cases {
		c.found = make(map[string]findings)
		for side := range c.sides {
			judges.Go(func() error {
				f, err := c.judge(side, t.TempDir(), certs, check.Rules{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s/%s: %v", c.name, side, err)
				}
				c.found[side] = f
				return nil
			})
		}
	}
	_ = judges.Wait()

	lists := map[string]map[string]string{"stricter-than-envoy": reasons(t, "stricter-than-envoy"), "not-static": reasons(t, "not-static")}
	sums := make(sums)
	for _, c := range cases {
		for _, side := range slices.Sorted(maps.Keys(c.sides)) {
			sum := sums.of(c, side)
			sum.sides++
			excuse := "not-static"
			if verdict, wrong := c.verdict(side); !wrong {
				sum.agreed++
				continue
			} else if verdict == falseAlarm {
				excuse = "stricter-than-envoy"
			}
			name := c.name
			if side == "good" {
				name += "/good"
			}
			if lists[excuse][name] != "" {
				sum.excused[excuse]++
			} else {
				t.Errorf("%s/%s: Envoy: %s %s; %d errors, %d warnings here\n%s", c.name, side, c.outcome, c.words, c.found[side].errors, c.found[side].warnings, c.found[side].text)
			}
			delete(lists[excuse], name)
		}
	}
	for list, left := range lists {
		for name := range left {
			t.Errorf("%s stands in %s, and agrees", name, list)
		}
	}
	golden(t, filepath.Join("testdata", "findings.txt"), describe(cases))
	golden(t, filepath.Join("..", "..", "docs", "evidence", "agreement.md"), document(t, sums))
}

// golden compares a file with got. With -update, it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	t.Errorf("%s (-want +got; make agreement rewrites it):\n%s", name, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads all cases.
func read(t *testing.T) (cases []*testCase) {
	t.Helper()
	names, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c := &testCase{name: strings.TrimSuffix(filepath.Base(name), ".txtar"), sides: make(map[string][]txtar.File), boot: []byte(bootstrap)}
		for line := range strings.Lines(string(archive.Comment)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "outcome":
				c.outcome = value
			case "error":
				c.words = value
			}
		}
		for _, f := range archive.Files {
			if f.Name == "boot.yaml" {
				c.boot = f.Data
				continue
			}
			side, base, _ := strings.Cut(f.Name, "/")
			c.sides[side] = append(c.sides[side], txtar.File{Name: base, Data: f.Data})
		}
		cases = append(cases, c)
	}
	return cases
}

// judge validates one side by rules, in an empty directory.
func (c *testCase) judge(side, dir, certs string, rules check.Rules) (findings, error) {
	if err := c.write(side, dir, certs); err != nil {
		return findings{}, err
	}
	checked, err := validated(dir, rules)
	if err != nil {
		return findings{}, err
	}
	var b strings.Builder
	for _, d := range checked.Diagnostics {
		fmt.Fprintf(&b, "%s: %s: %s [%s]\n", d.Position, d.Severity, d.Message, d.Code)
		if line, ok := checked.Line(d.Position); ok && d.Position.Line > 0 {
			fmt.Fprintf(&b, "    %s\n", strings.TrimSpace(line))
		}
	}
	text := strings.ReplaceAll(b.String(), dir+string(filepath.Separator), "")
	return findings{checked.Diagnostics.Count(diag.Error), checked.Diagnostics.Count(diag.Warning), text}, nil
}

// write writes one side to an empty directory.
func (c *testCase) write(side, dir, certs string) error {
	files := map[string][]byte{"boot.yaml": c.boot}
	for _, name := range []string{"cds.yaml", "lds.yaml"} { // the bootstrap names both
		files["xds/"+name] = []byte("resources: []\n")
	}
	for _, f := range c.sides[side] {
		files["xds/"+f.Name] = f.Data
	}
	if err := os.Mkdir(filepath.Join(dir, "xds"), 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return os.Symlink(certs, filepath.Join(dir, "certs"))
}

// validated validates the side in a directory.
func validated(dir string, rules check.Rules) (*check.Result, error) {
	rules.Disable = append(rules.Disable, "shared-directory") // all files of a case stand in one directory
	return check.Bootstrap(context.Background(), check.BootstrapOptions{Path: filepath.Join(dir, "boot.yaml"), Root: dir, Rules: rules})
}

// TestFixes: each fix of a finding in a case removes the finding.
func TestFixes(t *testing.T) {
	certs := t.TempDir()
	certificates(t, certs)
	tried := 0
	for _, c := range read(t) {
		for side := range c.sides {
			dir := t.TempDir()
			if err := c.write(side, dir, certs); err != nil {
				t.Fatal(err)
			}
			judge := func() diag.List {
				checked, err := validated(dir, check.Rules{})
				if err != nil {
					t.Fatalf("%s/%s: %v", c.name, side, err)
				}
				return checked.Diagnostics
			}
			besideMeant := func(diag.Diagnostic) bool { return c.name == "unknown_field_in_hcm" } // stat_prefx beside stat_prefix
			tried += fixing.Try(t, judge(), besideMeant, judge)
		}
	}
	t.Logf("%d fixes", tried)
	if tried == 0 {
		t.Error("no case has a fix")
	}
}

// The kinds of disagreement.
const (
	missed     = "missed"
	falseAlarm = "false alarm"
)

// verdict compares the findings of a side with Envoy's reaction. wrong reports a disagreement, and how is its kind.
func (c *testCase) verdict(side string) (how string, wrong bool) {
	f := c.found[side]
	switch {
	case side == "good", c.outcome == "accepted":
		return falseAlarm, f.errors > 0
	case c.outcome == "accepted-deprecated-warning":
		if f.errors > 0 {
			return falseAlarm, true
		}
		return missed, f.warnings == 0
	case c.outcome == "accepted-breaks-traffic":
		return missed, f.errors+f.warnings == 0
	default: // rejected, load-failure, crash, accepted-field-dropped
		return missed, f.errors == 0
	}
}

// reasons reads one of the two lists of intended disagreements.
func reasons(t *testing.T, list string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", list))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		name, reason, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || reason == "" {
			t.Fatalf("%s: %q is no name and reason", list, line)
		}
		found[name] = reason
	}
	return found
}

// describe returns the text of testdata/findings.txt.
func describe(cases []*testCase) []byte {
	var b bytes.Buffer
	for _, c := range cases {
		for _, side := range slices.Sorted(maps.Keys(c.sides)) {
			if text := c.found[side].text; text != "" {
				fmt.Fprintf(&b, "== %s/%s: %s %s\n%s", c.name, side, c.outcome, c.words, text)
			}
		}
	}
	return b.Bytes()
}
