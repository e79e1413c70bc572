package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const root = "../.."

// The bounds are shares of vague sentences. The packages of grpc-go, Prometheus and staticcheck have 2 to 5 % by the
// same measure, their pages 1 to 3 %.
const (
	mostInComments  = 0.06
	mostInPage      = 0.03
	mostInGenerated = 0.04
)

// commentColumns is the longest line of a comment; a tab counts as 4.
const commentColumns = 120

// listed returns the files of the repository with one of some suffixes.
func listed(t *testing.T, ends ...string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for file := range strings.Lines(string(out)) {
		file = filepath.Join(root, strings.TrimSpace(file))
		if _, err := os.Stat(file); err == nil && slices.Contains(ends, filepath.Ext(file)) && !strings.Contains(file, "/testdata/") {
			list = append(list, file)
		}
	}
	return list
}

// holds fails the test if the share of vague sentences exceeds a bound. A text of a few sentences may have no vague
// sentence.
func holds(t *testing.T, of string, list []sentence, most float64) {
	t.Helper()
	found := vagueOf(list)
	if len(found) <= int(most*float64(len(list))) {
		return
	}
	t.Errorf("%s: %d of %d sentences have to be read twice, at most %.0f %% may (go run ./tools/plain prints all):", of, len(found), len(list), 100*most)
	for _, s := range found[:min(5, len(found))] {
		t.Errorf("\t%s:%d: %s", s.File, s.Line, s.Text)
	}
}

func TestComments(t *testing.T) {
	packages := make(map[string][]sentence)
	for _, file := range listed(t, ".go") {
		list, err := commentsOf(file)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		packages[dir] = append(packages[dir], list...)
	}
	for dir, list := range packages {
		t.Run(dir, func(t *testing.T) { holds(t, dir, list, mostInComments) })
	}
}

func TestPages(t *testing.T) {
	for _, file := range listed(t, ".md") {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list, err := textOf(file)
			if err != nil {
				t.Fatal(err)
			}
			most := mostInPage
			if bytes.Contains(text, []byte("<!-- Made by go generate")) {
				most = mostInGenerated
			}
			holds(t, name, list, most)
		})
	}
}

// mostWords is the number of words of all pages that people write. A word has a letter or a digit, and stands outside
// of a block of code.
const mostWords = 35_000

// TestWords: all pages together have at most mostWords. Generated pages don't count, and neither do pages whose rows
// follow from the data of a test.
func TestWords(t *testing.T) {
	made := regexp.MustCompile(`docs/evidence/(bounds|envoy-facts)\.md$|docs/reference/states\.md$`)
	code, word := regexp.MustCompile("(?ms)^```.*?^```"), regexp.MustCompile(`\S*[\pL\pN]\S*`)
	words := 0
	for _, file := range listed(t, ".md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !made.MatchString(file) && !bytes.Contains(text, []byte("<!-- Made by go generate")) {
			words += len(word.FindAll(code.ReplaceAll(text, nil), -1))
		}
	}
	t.Logf("%d words", words)
	if words > mostWords {
		t.Errorf("the pages have %d words, at most %d: say a thing once, and link to it", words, mostWords)
	}
}

// TestColumns: no line of a comment is longer than commentColumns. The output of an example may be longer.
func TestColumns(t *testing.T) {
	for _, file := range listed(t, ".go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		printed := false
		for i, line := range strings.Split(string(text), "\n") {
			comment := strings.TrimSpace(line)
			if !strings.HasPrefix(comment, "// ") {
				printed = false
				continue
			}
			printed = printed || comment == "// Output:" || comment == "// Unordered output:"
			n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if n > commentColumns && strings.Contains(comment[3:], " ") && !printed {
				t.Errorf("%s:%d: %d columns, at most %d", file, i+1, n, commentColumns)
			}
		}
	}
}

// TestCodeColumns: each line of code is short, unless the line has a long string.
func TestCodeColumns(t *testing.T) {
	const most = 160
	long := regexp.MustCompile("\"[^\"]{50,}\"|`[^`]{50,}")
	for _, file := range listed(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if n > most && !long.MatchString(line) {
				t.Errorf("%s:%d: %d columns, at most %d", file, i+1, n, most)
			}
		}
	}
}

// TestMeasure: the measure distinguishes vague sentences from others.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		text  string
		vague bool
	}{
		{"private means that it may have those that are for all clients.", true},
		{"private permits secrets without constraints.", false},
		{"It keeps what it finds.", true},
		{"lookOnDisk answers isOut from the disk and caches the answer.", false},
		{"What is there is that.", true},
		{"Both of these.", false}, // a fragment
	} {
		list := sentencesOf("", 1, c.text)
		if got := len(vagueOf(list)) > 0; got != c.vague {
			t.Errorf("%q: vague %v, want %v", c.text, got, c.vague)
		}
	}
}
