package load_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/source/load"
)

// slip is an accidental edit of a text.
type slip struct {
	kind string
	line int // the edited line, from 1
	text string
}

// slips returns edits of a text, each of one character, line or indent: a random share of all possible edits.
func slips(random *rand.Rand, share float64, text string) []slip {
	var all []slip
	add := func(kind string, line int, parts ...string) {
		if random.Float64() < share {
			if edited := strings.Join(parts, ""); edited != text {
				all = append(all, slip{kind, line, edited})
			}
		}
	}
	line := 1
	for i, c := range []byte(text) {
		if c == '\n' {
			line++
			continue
		}
		before, after := text[:i], text[i+1:]
		add("character dropped", line, before, after)
		add("character doubled", line, before, string(c), string(c), after)
		if after != "" && after[0] != '\n' {
			add("characters swapped", line, before, after[:1], string(c), after[1:])
		}
	}
	lines := slices.Collect(strings.Lines(text))
	for i, l := range lines {
		before, after := strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
		add("line dropped", i+1, before, after)
		add("line doubled", i+1, before, l, l, after)
		if i+1 < len(lines) {
			add("line moved", i+1, before, lines[i+1], l, strings.Join(lines[i+2:], ""))
		}
		for _, spaces := range []string{" ", "  "} {
			add("indent changed", i+1, before, spaces, l, after)
			if rest, ok := strings.CutPrefix(l, spaces); ok {
				add("indent changed", i+1, before, rest, after)
			}
		}
	}
	return all
}

// nearSlips is the share of the refused slips that must have a finding on the edited line or the next, in each
// format.
const nearSlips = 0.95

// TestSlips makes accidental edits of valid files, of the examples and of a test. If an edit makes a file
// invalid, a finding must be on the edited line or the next in most cases: docs/validation.md has the figures.
// XDSPUB_SLIPS=all tries every edit, and prints the edits without such a finding.
func TestSlips(t *testing.T) {
	if testing.Short() {
		t.Skip("reads thousands of files, in one goroutine: nothing for the race detector")
	}
	everything := os.Getenv("XDSPUB_SLIPS") == "all"
	for _, format := range []string{"yaml", "json", "pb_text"} {
		t.Run(format, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			share := 0.05
			if everything {
				share = 1
			}
			near, refused := make(map[string]int), make(map[string]int)
			files := slipFiles(t, format)
			for _, path := range slices.Sorted(maps.Keys(files)) {
				for _, s := range slips(random, share, files[path]) {
					found := load.AsWritten(load.Input{Name: path, Format: format, Data: []byte(s.text)}).Diagnostics
					if !found.HasErrors() {
						continue
					}
					for _, kind := range []string{s.kind, ""} {
						refused[kind]++
						if isNear(found, s.line) {
							near[kind]++
						}
					}
					if os.Getenv("SHOW") != "" && !isNear(found, s.line) {
						t.Logf("%s, line %d of\n%s\n%v", s.kind, s.line, s.text, found)
					}
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(refused)) {
				t.Logf("%-18s %5d refused, %5.1f %% of them with a finding near by", kind, refused[kind], 100*float64(near[kind])/float64(refused[kind]))
			}
			if refused[""] < 500 || float64(near[""]) < nearSlips*float64(refused[""]) {
				t.Errorf("of %d slips that are refused, %d have a finding near by", refused[""], near[""])
			}
		})
	}
}

// isNear reports whether an error is on a line or the next.
func isNear(found diag.List, line int) bool {
	return slices.ContainsFunc(found, func(f diag.Diagnostic) bool {
		return f.Severity == diag.Error && (f.Line == line || f.Line == line+1)
	})
}

// slipFiles returns valid resource files in a format, by path.
func slipFiles(t *testing.T, format string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, root := range []string{"../../examples", "../../cmd/xdspub/testdata/tree"} {
		err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			in := load.Input{Name: path, Format: "yaml", Data: data}
			if !strings.Contains(string(data), "@type") || load.AsWritten(in).Diagnostics.HasErrors() {
				return nil
			}
			files[path] = inFormat(t, in, format)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

var manySpaces = regexp.MustCompile(`: +`) // prototext writes one or two spaces at random

// inFormat returns a YAML file in another format, with the usual line breaks.
func inFormat(t *testing.T, in load.Input, format string) string {
	t.Helper()
	switch format {
	case "json":
		text, err := sigsyaml.YAMLToJSON(in.Data)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		return out.String() + "\n"
	case "pb_text":
		response, result := load.Response(in)
		if response == nil {
			t.Fatal(result.Diagnostics)
		}
		return manySpaces.ReplaceAllString(prototext.MarshalOptions{Multiline: true, Indent: "  "}.Format(response), ": ")
	}
	return string(in.Data)
}
