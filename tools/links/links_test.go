// Package links tests that the targets of all links in documents exist, with their anchors, and that the documents
// that code names exist.
package links

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// files returns the files of the repository, relative to its root, without hidden folders and test data.
func files(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && path != root || e.Name() == "testdata" || e.Name() == "bin"):
			return fs.SkipDir
		case e.Type().IsRegular():
			name, err := filepath.Rel(root, path)
			list = append(list, name)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	listing = regexp.MustCompile("(?ms)^( *)```.*?^ *```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:href|src|srcset)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	words   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

func TestLinks(t *testing.T) {
	links := 0
	for _, name := range files(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text := code.ReplaceAllString(listing.ReplaceAllString(read(t, name), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			links++
			if err := check(t, name, m[1]+m[2]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// check returns an error if the target of a link in a document does not exist. It does not check links to other
// sites.
func check(t *testing.T, from, target string) error {
	if strings.Contains(target, "://") {
		return nil
	}
	path, anchor, _ := strings.Cut(target, "#")
	to := filepath.Join(filepath.Dir(from), path)
	if path == "" {
		to = from
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		return fmt.Errorf("%s leads nowhere", target)
	}
	if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
		return fmt.Errorf("%s: %s has no such heading", target, to)
	}
	return nil
}

// anchors returns the anchors of the headings of a document, as GitHub makes them.
func anchors(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(listing.ReplaceAllString(text, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, words.ReplaceAllString(m[1], "$1"))
		same := 0
		for slices.Contains(list, numbered(anchor, same)) {
			same++
		}
		list = append(list, numbered(anchor, same))
	}
	return list
}

// numbered returns the anchor of a heading after same headings with the same text.
func numbered(anchor string, same int) string {
	if same == 0 {
		return anchor
	}
	return fmt.Sprintf("%s-%d", anchor, same)
}

// TestOverview: the table of the README links to each page of docs/.
func TestOverview(t *testing.T) {
	readme := read(t, "README.md")
	for _, name := range files(t) {
		if filepath.Dir(name) == "docs" && filepath.Ext(name) == ".md" && !strings.Contains(readme, "]("+name+")") {
			t.Errorf("README.md does not lead to %s", name)
		}
	}
}

// TestNamedDocuments: the documents that comments, scripts and messages name exist.
func TestNamedDocuments(t *testing.T) {
	document := regexp.MustCompile(`(?m)(?:^|[\s(\x60])(docs/[a-z/-]+\.(?:md|svg))\b`)
	found := 0
	for _, name := range files(t) {
		for _, m := range document.FindAllStringSubmatch(read(t, name), -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names of documents were found", found)
	}
}

// TestEveryDocumentIsLinked: links lead from the README to each document.
func TestEveryDocumentIsLinked(t *testing.T) {
	reached := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		if filepath.Ext(name) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(listing.ReplaceAllString(read(t, name), ""), -1) {
			path, _, _ := strings.Cut(m[1]+m[2], "#")
			if to := filepath.Join(filepath.Dir(name), path); path != "" && !strings.Contains(path, "://") {
				if info, err := os.Stat(filepath.Join(root, to)); err == nil && info.Mode().IsRegular() {
					visit(to)
				}
			}
		}
	}
	visit("README.md")
	for _, name := range files(t) {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("no link leads from README.md to %s", name)
		}
	}
}

// TestRunbook: the runbook says what to do for each event that is a warning or an error, or has a link to the
// event in docs/logs.md, which says what to do.
func TestRunbook(t *testing.T) {
	runbook, logs := read(t, "docs/runbook.md"), read(t, "docs/logs.md")
	for _, m := range regexp.MustCompile(`\(logs\.md#([a-z-]+)\)`).FindAllStringSubmatch(runbook, -1) {
		_, event, _ := strings.Cut(logs, "\n### "+m[1]+"\n")
		if event, _, _ = strings.Cut(event, "\n### "); !strings.Contains(event, "**What to do:**") {
			t.Errorf("docs/runbook.md has a link to the event %s, and docs/logs.md does not say what to do", m[1])
		}
	}
	events := regexp.MustCompile("(?m)^\\| \\[(`[a-z-]+`)\\]\\(#[a-z-]+\\) \\| [^|]*(?:WARN|ERROR) ").FindAllStringSubmatch(logs, -1)
	if len(events) < 10 {
		t.Errorf("only %d events were found in docs/logs.md", len(events))
	}
	for _, m := range events {
		if !strings.Contains(runbook, m[1]) {
			t.Errorf("docs/runbook.md does not say what to do for the event %s", m[1])
		}
	}
}

// TestRunbookReasons: the runbook names each reason for "not in sync" that docs/reference/states.md has.
func TestRunbookReasons(t *testing.T) {
	count := regexp.MustCompile(`\d+( of \d+)?`)
	runbook := count.ReplaceAllString(read(t, "docs/runbook.md"), "N")
	reasons := make(map[string]bool)
	for _, m := range regexp.MustCompile("not in sync: ([^`]*)").FindAllStringSubmatch(read(t, "docs/reference/states.md"), -1) {
		for reason := range strings.SplitSeq(m[1], "; ") {
			reason, _, _ = strings.Cut(reason, " (") // the number of errors
			reasons[count.ReplaceAllString(reason, "N")] = true
		}
	}
	if len(reasons) < 10 {
		t.Errorf("only %d reasons were found in docs/reference/states.md", len(reasons))
	}
	for reason := range reasons {
		if !strings.Contains(runbook, reason) {
			t.Errorf("docs/runbook.md does not say what to do for %q", reason)
		}
	}
}

// TestAlerts: the runbook has a row for each alert of examples/monitoring, each alert has a link to a section of the
// runbook, and the runbook names no other alert.
func TestAlerts(t *testing.T) {
	rules, runbook := read(t, "examples/monitoring/rules.yaml"), read(t, "docs/runbook.md")
	alerts := regexp.MustCompile(`(?s)- alert: (\w+)\n(.*?)runbook_url: https://example\.com/xdspub/(docs/runbook\.md#[a-z-]+)\n`).FindAllStringSubmatch(rules, -1)
	if n := strings.Count(rules, "alert: "); len(alerts) != n || n < 10 {
		t.Errorf("%d of %d alerts have a link to the runbook", len(alerts), n)
	}
	named := make(map[string]bool)
	for _, m := range alerts {
		named[m[1]] = true
		if strings.Contains(m[2], "- alert: ") {
			t.Errorf("%s has no runbook_url", m[1])
		}
		if !strings.Contains(runbook, "`"+m[1]+"`") {
			t.Errorf("docs/runbook.md has no row for %s", m[1])
		}
		if err := check(t, "README.md", m[3]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	for _, name := range regexp.MustCompile("`(Xdspub[A-Za-z]+)`").FindAllStringSubmatch(runbook, -1) {
		if !named[name[1]] {
			t.Errorf("docs/runbook.md has a row for %s, which is no alert of examples/monitoring", name[1])
		}
	}
}
