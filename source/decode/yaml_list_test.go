package decode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"xdspub/source/syntax"
	"xdspub/tools/sample"
)

// TestPieces compares the resources and findings of a long list that is decoded in pieces with those of the
// whole document, after random edits of lines.
func TestPieces(t *testing.T) {
	mesh := sample.Topology{Clusters: 130, Routes: 1, Listeners: 1}
	for _, c := range []struct {
		name   string
		source *Source
		text   string
		indent string // of the list
		edits  int
	}{
		{"response", &Source{}, sample.Clusters(140), "", 150},
		{"root", &Source{}, "--- # all\n" + strings.TrimPrefix(sample.Clusters(140), "resources:\n"), "", 100},
		{"static resources", &Source{}, "node: {id: x}\n" + mesh.Bootstrap() + "  secrets:\n  - name: s\nadmin: {}\n", "  ", 40},
		{"bootstrap", &Source{isBootstrap: true, byEnvoy: true}, mesh.Bootstrap() + "  secrets: [{name: s}]\n", "  ", 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 0))
			pieces := 0
			edits := c.edits
			if testing.Short() {
				edits /= 40
			}
			for i := range edits {
				text := edited(r, c.text, c.indent)
				inPieces, ok := decodeDocuments(c.source, text, true)
				if !ok {
					continue
				}
				pieces++
				whole, _ := decodeDocuments(c.source, text, false)
				if !slices.EqualFunc(whole, inPieces, same) {
					t.Fatalf("edit %d (-whole +pieces):\n%s\n%s", i, cmp.Diff(whole, inPieces, protocmp.Transform()), text)
				}
			}
			if pieces < edits/4 {
				t.Errorf("only %d documents were read in pieces", pieces)
			}
		})
	}
}

// TestEndWithoutNewline checks a list whose last line has only blanks and no line break.
func TestEndWithoutNewline(t *testing.T) {
	for _, end := range []string{"", " ", "  ", "   \t", "  #", "-", "  -"} {
		for _, c := range []struct {
			source *Source
			text   string
		}{
			{&Source{}, sample.Clusters(2)},
			{&Source{}, strings.TrimPrefix(sample.Clusters(2), "resources:\n")},
			{&Source{isBootstrap: true, byEnvoy: true}, sample.Topology{Clusters: 2, Routes: 1, Listeners: 1}.Bootstrap()},
		} {
			text := strings.TrimRight(c.text, "\n") + "\n" + end
			inPieces, ok := decodeDocuments(c.source, text, true)
			whole, _ := decodeDocuments(c.source, text, false)
			if diff := cmp.Diff(whole, inPieces, protocmp.Transform()); ok && diff != "" {
				t.Errorf("ending in %q (-whole +pieces):\n%s", end, diff)
			}
		}
	}
}

// edited returns a text after up to two random edits of its lines. Some of the new lines begin with indent.
func edited(r *rand.Rand, text, indent string) string {
	odd := []string{
		"\n", "# comment\n", "  # comment\n", "version_info: \"1\"\n", "- \n", "-\n", "- null\n", "-x\n", "---\n", "...\n", "\tx: y\n", "  name: \"a\n", "  name: |\n",
		"    - text\n", "- text\n", "resources:\n", "resources: []\n", "  alt_stat_name: [\n", "  - ]\n", "- {\n", "}\n", "  name: &a x\n", "  name: *a\n", "  domains: [\"*\"]\n", "  name: 'it''s'\n",
		"nonce: x\n", "%YAML 1.1\n", "  name: - x\n", " - x: y\n", "  \"quoted\n", "- more\"\n", "  plain\n", "\"@type\": x\n",
		"clusters:\n", "secrets:\n", "static_resources:\n", "staticResources: {}\n", "listeners: # none\n",
	}
	line := func() string {
		line := odd[r.IntN(len(odd))]
		if r.IntN(2) == 0 {
			line = indent + line
		}
		return line
	}
	lines := strings.SplitAfter(text, "\n")
	for range r.IntN(3) {
		at := r.IntN(len(lines))
		switch r.IntN(3) {
		case 0:
			lines = append(lines[:at], lines[at+1:]...)
		case 1:
			lines[at] = line()
		default:
			lines = append(lines[:at], append([]string{line()}, lines[at:]...)...)
		}
	}
	return strings.Join(lines, "")
}

// same reports whether two results of decodeDocuments are equal. cmp.Diff takes a hundred times as long.
func same(a, b any) bool {
	one, ok := a.(proto.Message)
	if !ok {
		return a == b
	}
	other, ok := b.(proto.Message)
	return ok && proto.Equal(one, other)
}

// decodeDocuments returns the resources and findings of a text, for comparison by same. ok reports whether a
// document was decoded in pieces.
func decodeDocuments(like *Source, text string, inPieces bool) (found []any, ok bool) {
	s := NewSource("a.yaml", syntax.YAML, []byte(text), SourceOptions{})
	s.isBootstrap, s.byEnvoy = like.isBootstrap, like.byEnvoy
	f := NewFile(s)
	d := &decoder{file: f}
	for _, doc := range f.Source.documents() {
		if inPieces && long(d, doc) {
			ok = true
			continue
		}
		whole(d, doc)
	}
	for _, r := range f.Resources {
		found = append(found, r.Key.String(), r.Message(), r.Origin.Range("name").Position, r.Origin.Range("load_assignment.endpoints[0]").Position)
	}
	for _, e := range f.Envelopes {
		found = append(found, e)
	}
	if f.Bootstrap != nil {
		found = append(found, f.Bootstrap.Message())
	}
	for _, finding := range f.Diagnostics().Sort() {
		found = append(found, finding.String(), fmt.Sprint(finding.Path, finding.Resource, finding.Help))
	}
	return found, ok
}
