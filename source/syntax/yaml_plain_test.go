package syntax

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/tools/sample"
)

// asParsed compares the result of plainJSON for a text with the result of the parser, and returns whether the
// text is plain.
func asParsed(t *testing.T, text []byte) (plain bool) {
	t.Helper()
	got, ok := plainJSON(text)
	if !ok {
		return false
	}
	want, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q is\n%s, to the parser\n%s, %v", text, got, want, err)
	}
	return true
}

func TestPlainYAML(t *testing.T) {
	for text, plain := range map[string]bool{
		"a: b":                       true,
		"---\na: b\n":                true,
		"a:\nb:\n":                   true,
		"a:\n- b\n- c: d\n  e: f\n":  true,
		"a:\n  - b\n  -\n    c: d\n": true,
		"- - a\n  - b\n- c\n":        true,
		"a: {b: c, d: [e, 1, true, null], f: {}}": true,
		"a: 'it is' # said\nb: \"x # y\" # z\n":   true,
		"a: 127.0.0.1\nb: 0.25s\nc: 10s\nd: 8":    true,
		"\"@type\": type.googleapis.com/x.Y":      true,
		"a: <&>\nb: \"<&>\"":                      false, // & begins an anchor somewhere
		"b: \"<&>\"":                              true,
		"# nothing\n":                             false,
		"":                                        false,
		"a: b\na: c":                              false, // doubled
		"a: yes":                                  false,
		"on: a":                                   false,
		"a: 012":                                  false,
		"a: 1e3":                                  false,
		"a: 1.5":                                  false,
		"a: 1:30":                                 false,
		"a: 2001-01-01":                           false,
		"a: ~":                                    false,
		"a: .inf":                                 false,
		"a: b\n  c":                               false, // a scalar on two lines
		"a: |\n  b":                               false,
		"a: &x b":                                 false,
		"a: *x":                                   false,
		"a: !t b":                                 false,
		"<<: b":                                   false,
		"a: 'it''s'":                              false,
		"a: \"\\n\"":                              false,
		"a: b\n- c":                               false,
		"a:\n    b: c\n  d: e":                    false,
		"a: {b: c} d":                             false,
		"a: {b: c}#d":                             false,
		"a: \"b\"#d":                              false,
		"a: [b":                                   false,
		"a: b: c":                                 false,
		"a:\tb":                                   false,
		"a: é":                                    false,
		"a: b\r\n":                                false,
		"a: b\n---\nc: d":                         false,
		"a: b\n...\n":                             false,
		"%YAML 1.1\n---\na: b":                    false,
		"{a: b}":                                  false,
		strings.Repeat("k", 2000) + ": a":         false,
		"a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200): false,
	} {
		if is := asParsed(t, []byte(text)); is != plain {
			t.Errorf("%.60q is plain: %v", text, is)
		}
	}
	if !asParsed(t, []byte(sample.Clusters(20))) {
		t.Error("the sample is not plain")
	}
}

func FuzzPlainYAML(f *testing.F) {
	for _, text := range []string{
		sample.Clusters(3), "a:\n- b: {c: [d, 1]}\n  e: 'f' # g\n-\n  - h\n", "- - a\n  - b: 10s\n    c: 1.2.3.4\n-\n",
		"a: \"b\"#c", "a:\n b:\n  c\n", "a: {b: , c: }", "a: [b,\n c]", "? a\n: b", "a:\n-\n-\n  b: c\n d: e",
	} {
		f.Add([]byte(text))
	}
	paths, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) { asParsed(t, text) })
}

// TestPlainEdits edits lines of a plain text at random, and compares plainJSON with the parser.
func TestPlainEdits(t *testing.T) {
	if testing.Short() {
		t.Skip("reads thousands of texts, in one goroutine: nothing for the race detector")
	}
	texts := []string{sample.Clusters(3), sample.Topology{Clusters: 2, Routes: 2, Listeners: 2}.Bootstrap()}
	r := rand.New(rand.NewPCG(1, 0))
	plain := 0
	for i := range 4000 {
		text := []byte(texts[i%len(texts)])
		for range 1 + r.IntN(3) {
			at := r.IntN(len(text))
			switch piece := []byte(`-:{}[],#"' ` + "\n&*!|>~0x1sye.")[r.IntN(25)]; r.IntN(3) {
			case 0:
				text[at] = piece
			case 1:
				text = slices.Insert(text, at, piece)
			default:
				text = slices.Delete(text, at, at+1)
			}
		}
		if asParsed(t, text) {
			plain++
		}
	}
	if plain < 500 {
		t.Errorf("%d texts were plain", plain)
	}
}
