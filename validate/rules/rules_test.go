package rules_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/follow"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/tools/fixing"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

func TestRulesAreSound(t *testing.T) {
	for i, r := range rules.All {
		if fault := unsound(r); fault != "" {
			t.Errorf("rule %d, %s: %s", i, r.Code, fault)
		}
		if i > 0 && rules.All[i-1].Code >= r.Code {
			t.Errorf("rule %s: doubled or out of order", r.Code)
		}
	}
}

var (
	codeForm  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	checkForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+){0,4}$`)
)

// unsound returns the fault of a rule, or "": its code is missing or not in kebab-case, its Doc has no summary or
// no reason, or it has no function.
func unsound(r *validate.Rule) string {
	summary, reason, _ := strings.Cut(r.Doc, "\n\n")
	switch {
	case !codeForm.MatchString(r.Code):
		return "the code is not kebab-case"
	case strings.TrimSpace(summary) == "" || strings.Contains(summary, "\n") || strings.TrimSpace(reason) == "":
		return "Doc needs a summary line, an empty line and a reason"
	case r.OptIn != strings.HasSuffix(summary, "(off by default)."):
		return "the summary of a rule that is off ends with (off by default), that of no other"
	case r.Node == nil && r.Lookup == nil && r.Resource == nil && r.Snapshot == nil:
		return "nothing to run"
	case r.Node != nil && r.Lookup != nil:
		return "both Node and Lookup"
	case (len(r.Messages) > 0 || r.MessagesOf != nil || r.Wants != nil) && r.Node == nil && r.Lookup == nil:
		return "Messages without Node or Lookup"
	case len(r.Messages) > 0 && r.Wants != nil, len(r.Messages) > 0 && r.MessagesOf != nil, r.Wants != nil && r.MessagesOf != nil:
		return "two of Messages, MessagesOf and Wants"
	case len(r.Collect) > 0 && r.Snapshot == nil:
		return "Collect without Snapshot"
	case !slices.IsSortedFunc(r.Checks, func(a, b diag.Check) int { return cmp.Compare(a.Name, b.Name) }), len(r.Checks) == 1:
		return "Checks are two or more, sorted by name"
	}
	for _, c := range r.Checks {
		if !checkForm.MatchString(c.Name) {
			return c.Name + " is not kebab-case, of five words at most"
		}
		if len(c.Summary) > 85 || !strings.HasSuffix(c.Summary, ".") || c.Name == r.Code {
			return c.Name + " needs a sentence of 85 characters at most"
		}
	}
	return ""
}

// TestRules judges the examples of each rule, testdata/<code>.txtar of its family. The folders bad… and good… of an
// archive are source trees. A folder with boot.yaml is a bootstrap with its files. bootstrap.yaml has the static
// resources of the Envoy. A comment # want "regexp" must stand on each line with a finding of the rule, and on no
// other line. The regexp is matched against "severity: message; help: …; file:line: related message". No other rule
// may find anything. "envoy-version: 1.36" may stand above the first file. The folders below teams own their resources.
func TestRules(t *testing.T) {
	for _, rule := range rules.All {
		t.Run(rule.Code, func(t *testing.T) {
			archive, dir := write(t, rule.Code, t.TempDir())
			options := validate.Options{Now: certs.Now, Variants: rule.OfVariants, Profiles: rule.Profiles[:min(1, len(rule.Profiles))], BootstrapFacts: known(t, filepath.Join(dir, "bootstrap.yaml"))}
			if rule.Code != "deprecated-field" { // the examples of some rules need deprecated fields
				options.Disable = []string{"deprecated-field"}
			}
			if rule.OptIn {
				options.Enable = []string{rule.Code}
			}
			if name, ok := strings.CutPrefix(string(archive.Comment), "envoy-version: "); ok {
				options.Envoy = envoyapi.Named(strings.TrimSpace(name))
			}
			trees, wants := examples(t, archive)
			for _, kind := range []string{"bad", "good"} {
				if trees[kind] == nil {
					t.Errorf("no %s example", kind)
				}
			}
			var found diag.List
			for _, names := range trees {
				for _, name := range names {
					found = append(found, judge(t, filepath.Join(dir, name), dir, rule.Code, options, wants)...)
				}
			}
			checks(t, rule, found)
			for at, list := range wants {
				for _, want := range list {
					t.Errorf("%s: no finding that matches %q", at, want)
				}
			}
		})
	}
}

// write writes the examples of a rule, and the certificates that they name, to a directory.
func write(t *testing.T, code, dir string) (*txtar.Archive, string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("*", "testdata", code+".txtar"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("the examples of %s stand in one file: %v, %v", code, paths, err)
	}
	archive, err := txtar.ParseFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range archive.Files {
		if archive.Files[i].Data, err = certs.Expand(f.Data); err != nil {
			t.Fatalf("%s: %s: %v", code, f.Name, err)
		}
	}
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	return archive, dir
}

// judge validates a tree, removes its findings from wants, and returns them.
func judge(t *testing.T, tree, root, code string, options validate.Options, wants map[string][]*regexp.Regexp) diag.List {
	t.Helper()
	untried := options
	loaded, snapshot, options := open(t, tree, options)
	for _, d := range loaded {
		t.Errorf("the example does not load: %s: %s", d.Position, d.Message)
	}
	found := validate.Run(t.Context(), snapshot, rules.All, options)
	for _, d := range found {
		at, text := describe(d, root)
		if diag.CodeOf(d.Code) != code || !take(wants, at, text) {
			t.Errorf("%s: unwanted: %s [%s]", at, text, d.Code)
		}
	}
	fixing.Try(t, found, func(diag.Diagnostic) bool { return false }, func() diag.List {
		loaded, snapshot, options := open(t, tree, untried)
		return append(loaded, validate.Run(t.Context(), snapshot, rules.All, options)...)
	})
	return found
}

// open reads a source tree, or follows the bootstrap in it.
func open(t *testing.T, tree string, options validate.Options) (diag.List, *xds.Snapshot, validate.Options) {
	t.Helper()
	if boot := filepath.Join(tree, "boot.yaml"); exists(boot) {
		result, err := follow.Bootstrap(t.Context(), boot, follow.Options{Root: tree, Envoy: options.Envoy, Disable: []string{"missing-path"}})
		if err != nil {
			t.Fatal(err)
		}
		options.Bootstrap, options.BootstrapFacts, options.Incomplete = result.Bootstrap, result.BootstrapFacts, result.Incomplete
		return result.Diagnostics, result.Snapshot, options
	}
	loaded, err := load.New(load.Options{Envoy: options.Envoy, Owners: []string{"teams/*"}}).Load(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Diagnostics, loaded.Snapshot(), options
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// examples returns the names of the trees of an archive by their kind, and the wanted findings by file:line.
func examples(t *testing.T, archive *txtar.Archive) (trees map[string][]string, wants map[string][]*regexp.Regexp) {
	t.Helper()
	trees, wants = make(map[string][]string), make(map[string][]*regexp.Regexp)
	seen := make(map[string]bool)
	for _, f := range archive.Files {
		tree, _, ok := strings.Cut(f.Name, "/")
		kind := strings.TrimRight(tree, "0123456789")
		if !ok || kind != "bad" && kind != "good" {
			continue
		}
		if !seen[tree] {
			seen[tree] = true
			trees[kind] = append(trees[kind], tree)
		}
		for i, line := range strings.Split(string(f.Data), "\n") {
			_, comment, ok := strings.Cut(line, "# want ")
			if !ok {
				continue
			}
			if kind == "good" {
				t.Errorf("%s:%d: a good example wants nothing", f.Name, i+1)
			}
			at := fmt.Sprintf("%s:%d", f.Name, i+1)
			for comment = strings.TrimSpace(comment); comment != ""; comment = strings.TrimSpace(comment) {
				quoted, err := strconv.QuotedPrefix(comment)
				if err != nil {
					t.Fatalf("%s: %v in %s", at, err, comment)
				}
				text, _ := strconv.Unquote(quoted)
				wants[at] = append(wants[at], regexp.MustCompile(text))
				comment = comment[len(quoted):]
			}
		}
	}
	return trees, wants
}

func describe(d diag.Diagnostic, root string) (at, text string) {
	place := func(p diag.Position) string {
		rel, _ := filepath.Rel(root, p.File)
		return fmt.Sprintf("%s:%d", filepath.ToSlash(rel), p.Line)
	}
	text = fmt.Sprintf("%s: %s; help: %s", d.Severity, d.Message, d.Help)
	for _, r := range d.Related {
		text += fmt.Sprintf("; %s: %s", place(r.Position), r.Message)
	}
	return place(d.Position), text
}

// take removes the first want at a place that matches text. It returns false if none matches.
func take(wants map[string][]*regexp.Regexp, at, text string) bool {
	for i, want := range wants[at] {
		if want.MatchString(text) {
			wants[at] = append(wants[at][:i:i], wants[at][i+1:]...)
			return true
		}
	}
	return false
}

func known(t *testing.T, path string) xds.BootstrapFacts {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return xds.BootstrapFacts{}
	}
	b, list, err := load.Bootstrap(path, nil)
	if err != nil || len(list) > 0 {
		t.Fatal(err, list)
	}
	return xds.BootstrapFactsOf(b)
}

// TestIncomplete: if the Snapshot is incomplete, a missing resource is no finding, unless the resource must be in
// the bootstrap.
func TestIncomplete(t *testing.T) {
	_, dir := write(t, "unresolved-reference", t.TempDir())
	loaded, err := load.New(load.Options{}).Load(t.Context(), filepath.Join(dir, "bad1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{Incomplete: xds.Types, Disable: []string{"deprecated-field"}}) {
		if d.Code != "unresolved-reference/static-cluster" {
			t.Errorf("%s: %s [%s]", d.Position, d.Message, d.Code)
		}
	}
}

// TestDatesNeedATime: without Options.Now, no rule judges dates.
func TestDatesNeedATime(t *testing.T) {
	_, dir := write(t, "expired-certificate", t.TempDir())
	loaded, err := load.New(load.Options{}).Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{}) {
		if diag.CodeOf(d.Code) == "expired-certificate" {
			t.Errorf("%s: %s", d.Position, d.Message)
		}
	}
}

// TestRunIsTheSameEachTime judges all bad examples together twice, and compares the findings.
func TestRunIsTheSameEachTime(t *testing.T) {
	dir := t.TempDir()
	for _, rule := range rules.All {
		write(t, rule.Code, filepath.Join(dir, rule.Code))
	}
	loaded, err := load.New(load.Options{}).Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	judged := func() []byte {
		var b bytes.Buffer
		for _, d := range validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{}) {
			at, text := describe(d, dir)
			fmt.Fprintln(&b, at, d.Code, text)
		}
		return b.Bytes()
	}
	first := judged()
	again := 5
	if testing.Short() {
		again = 1
	}
	for range again {
		if again := judged(); !bytes.Equal(first, again) {
			t.Fatalf("two runs differ:\n%s\n%s", first, again)
		}
	}
}
