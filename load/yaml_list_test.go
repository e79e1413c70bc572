package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"xdspub/internal/sample"
)

// TestPieces compares what a long list gives in pieces with what the same document
// gives as a whole, after random edits of its lines.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	lines := strings.SplitAfter(sample.Clusters(140), "\n")
	odd := []string{
		"\n", "# comment\n", "  # comment\n", "version_info: \"1\"\n", "- \n", "-\n", "- null\n", "-x\n", "---\n", "...\n", "\tx: y\n", "  name: \"a\n", "  name: |\n",
		"    - text\n", "- text\n", "resources:\n", "resources: []\n", "  alt_stat_name: [\n", "  - ]\n", "- {\n", "}\n", "  name: &a x\n", "  name: *a\n", "  domains: [\"*\"]\n", "  name: 'it''s'\n",
		"nonce: x\n", "%YAML 1.1\n", "  name: - x\n", " - x: y\n", "  \"quoted\n", "- more\"\n", "  plain\n", "\"@type\": x\n",
	}
	pieces := 0
	for i := range 150 {
		edited := append([]string(nil), lines...)
		for range r.IntN(3) {
			at := r.IntN(len(edited))
			switch r.IntN(3) {
			case 0:
				edited = append(edited[:at], edited[at+1:]...)
			case 1:
				edited[at] = odd[r.IntN(len(odd))]
			default:
				edited = append(edited[:at], append([]string{odd[r.IntN(len(odd))]}, edited[at:]...)...)
			}
		}
		text := strings.Join(edited, "")
		inPieces, ok := decodeDocuments(text, true)
		if !ok {
			continue
		}
		pieces++
		whole, _ := decodeDocuments(text, false)
		if diff := cmp.Diff(whole, inPieces, protocmp.Transform()); diff != "" {
			t.Fatalf("edit %d (-whole +pieces):\n%s\n%s", i, diff, text)
		}
	}
	if pieces < 50 {
		t.Errorf("only %d documents were read in pieces", pieces)
	}
}

// decodeDocuments is what a text holds, in a form that can be compared. ok tells
// whether some document was read in pieces.
func decodeDocuments(text string, inPieces bool) (found []any, ok bool) {
	f := &file{source: newSource("a.yaml", formatYAML, []byte(text))}
	d := decoder{file: f}
	for _, doc := range f.source.split() {
		if inPieces && d.long(doc) {
			ok = true
			continue
		}
		d.whole(doc)
	}
	for _, r := range f.resources {
		found = append(found, r.Name, r.Message, r.Origin.Position("name"), r.Origin.Position("load_assignment.endpoints[0]"))
	}
	for _, e := range f.envelopes {
		found = append(found, e)
	}
	for _, finding := range f.diagnostics.Sort() {
		found = append(found, finding.String(), fmt.Sprint(finding.Path, finding.Resource, finding.Help))
	}
	return found, ok
}
