package agreement

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sums count sides by what Envoy did.
type sums map[string]*sum

type sum struct {
	sides, agreed int
	excused       map[string]int // by list
}

// outcomes are what Envoy can do, in the order of the document, with what is wanted.
var outcomes = [][2]string{
	{"rejected", "an error"},
	{"load-failure", "an error"},
	{"crash", "an error"},
	{"accepted-field-dropped", "an error"},
	{"accepted-breaks-traffic", "a warning at least"},
	{"accepted-deprecated-warning", "a warning, no error"},
	{"accepted", "no error"},
	{"good side", "no error"},
}

func (s sums) of(c *testCase, side string) *sum {
	key := c.outcome
	if side == "good" {
		key = "good side"
	}
	if s[key] == nil {
		s[key] = &sum{excused: make(map[string]int)}
	}
	return s[key]
}

// document is docs/evidence/agreement.md.
func document(t *testing.T, s sums) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`# Agreement with Envoy

<!-- Made by make agreement; a test of each CI compares. -->

` + "`xdspub validate BOOTSTRAP`" + ` is held against what the real Envoy 1.40.0 did with the
same files: ` + "`internal/agreement/testdata/cases`" + ` are pairs of directories, and Envoy's
verdict when ` + "`bad/`" + ` was renamed over a running ` + "`good/`" + `. Every finding, with the line
that it points at, stands in ` + "`internal/agreement/testdata/findings.txt`" + `.

| what Envoy did | wanted of validate | sides | agree | stricter-than-envoy | not-static |
|---|---|---|---|---|---|
`)
	refused, found := 0, 0
	for _, o := range outcomes {
		sum := s[o[0]]
		if sum == nil {
			continue
		}
		if o[1] == "an error" {
			refused, found = refused+sum.sides, found+sum.agreed
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d |\n", o[0], o[1], sum.sides, sum.agreed, sum.excused["stricter-than-envoy"], sum.excused["not-static"])
	}
	fmt.Fprintf(&b, "\nOf %d refusals, crashes and dropped fields %d are found: %.1f %%.\n", refused, found, 100*float64(found)/float64(refused))
	for _, list := range []struct{ name, text string }{
		{"stricter-than-envoy", "Envoy takes these, and validate refuses them on purpose."},
		{"not-static", "Whether Envoy refuses these depends on its machine; the files do not say it."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", list.name, list.text)
		all := reasons(t, list.name)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "- `%s`: %s\n", name, all[name])
		}
	}
	for _, part := range []string{"mutations.md", "worldwide.md"} {
		text, err := os.ReadFile(filepath.Join("testdata", part))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(string(text)))
	}
	return b.Bytes()
}
