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

	"xdspub/envoy/envoyapi"
)

// sums has the sum of each reaction of Envoy.
type sums map[string]*sum

type sum struct {
	sides, agreed int
	excused       map[string]int // by list
}

// outcomes are Envoy's possible reactions, in the order of the document, each with the expected findings.
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

// olderEnvoys returns the part of the document about the older Envoys.
func olderEnvoys(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	counts, excused := make(map[string]int), make(map[string]int) // by release and reaction
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] != "#" {
			counts[words[0]+" "+words[1]]++
		}
	}
	var b strings.Builder
	b.WriteString(`
## Older Envoys

Older Envoys judged the same cases by ` + "`--mode validate`" + `. ` + "`tools/agreement/testdata/versions.txt`" + ` lists the
differences from 1.40. With ` + "`--envoy-version`" + `, validate finds the refusals of the older Envoy.

| | refuses, 1.40 accepts | found | accepts, 1.40 refuses | validate is stricter |
|---|---|---|---|---|
`)
	all := reasons(t, "versions-otherwise")
	for line := range all {
		words := strings.Fields(line)
		excused[words[0]+" "+words[1]]++
	}
	for _, v := range slices.Backward(envoyapi.Versions[1:]) {
		refuses, takes := counts[v.Name+" refuses"], counts[v.Name+" takes"]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", v.Name, refuses, refuses-excused[v.Name+" refuses"], takes, excused[v.Name+" takes"])
	}
	if len(all) > 0 {
		b.WriteString("\n")
	}
	for _, line := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "- %s: %s\n", line, all[line])
	}
	return b.String()
}

// document returns the text of docs/evidence/agreement.md.
func document(t *testing.T, s sums) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`# Agreement with Envoy

<!-- Made by make agreement; a test of each CI compares. -->

For users who ask how far to trust ` + "`xdspub validate`" + `. After this page you know how often validate and the real
Envoy 1.40.0 disagree about the same files.

` + "`tools/agreement/testdata/cases`" + ` has pairs of directories, and Envoy's reaction when ` + "`bad/`" + ` replaced a
running ` + "`good/`" + `. ` + "`tools/agreement/testdata/findings.txt`" + ` has the findings, with their lines.

| what Envoy did | expected of validate | sides | agree | stricter-than-envoy | not-static |
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
	fmt.Fprintf(&b, "\nvalidate finds %d of %d refusals, crashes and dropped fields: %.1f %%.\n", found, refused, 100*float64(found)/float64(refused))
	for _, list := range []struct{ name, text string }{
		{"stricter-than-envoy", "Envoy accepts these configurations; validate refuses them on purpose."},
		{"not-static", "The files alone do not decide Envoy's verdict on these configurations."},
	} {
		all := reasons(t, list.name)
		if len(all) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", list.name, list.text)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "- `%s`: %s\n", name, all[name])
		}
	}
	b.WriteString(olderEnvoys(t))
	for _, part := range []string{"mutations.md", "worldwide.md"} {
		text, err := os.ReadFile(filepath.Join("testdata", part))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(string(text)))
	}
	return b.Bytes()
}
