package graph_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/observe/graph"
)

// picture is a text for a program that draws.
type picture struct {
	Format string `json:"format"` // dot or mermaid
	Text   string `json:"text"`
}

// answer is what such a program has read.
type answer struct {
	Nodes []string `json:"nodes"` // labels
	Edges int      `json:"edges"`
	Error string   `json:"error"`
}

// read has Graphviz and Mermaid read pictures. It needs scripts/diagrams.
func read(t *testing.T, pictures []picture) (answers []answer) {
	t.Helper()
	folder, err := exec.Command("../../scripts/diagrams", "--no-install").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s", failed.Stderr)
		}
		t.Skipf("NOT TESTED, needs scripts/diagrams: %s", failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(pictures)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/read.mjs", strings.TrimSpace(string(folder)))
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(pictures) {
		t.Fatalf("%v\n%s", err, out)
	}
	return answers
}

// TestRead has Graphviz and Mermaid read the pictures of trees. Both find each Node with its label, and each Edge.
func TestRead(t *testing.T) {
	large := drawn(t, topology(t, 300), nil)
	graphs := map[string]*graph.Graph{
		"quickstart": drawn(t, checked(t, "../../examples/quickstart"), nil),
		"types":      drawn(t, checked(t, "../../tools/types/testdata"), nil),
		"hostile":    drawn(t, hostile(t), nil),
		"groups":     large.Limit(graph.Limits{Nodes: 100, Edges: graph.MermaidEdges}),
		"empty":      drawn(t, checked(t, t.TempDir()), nil),
	}
	var pictures []picture
	var names []string
	for name, g := range graphs {
		var dot, mermaid bytes.Buffer
		if err := errors.Join(g.WriteDOT(&dot), g.WriteMermaid(&mermaid)); err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, picture{"dot", dot.String()}, picture{"mermaid", mermaid.String()})
		names = append(names, name, name)
	}
	for i, got := range read(t, pictures) {
		g := graphs[names[i]]
		if got.Error != "" || got.Edges != len(g.Edges) {
			t.Errorf("%s, %s: %d edges of %d: %s\n%s", names[i], pictures[i].Format, got.Edges, len(g.Edges), got.Error, pictures[i].Text)
			continue
		}
		for _, n := range g.Nodes {
			first := n.Label // what is clipped in the picture begins the same
			if short := []rune(first); len(short) > 10 {
				first = string(short[:10])
			}
			first = diag.Printable(first)
			if pictures[i].Format == "dot" {
				first = strings.ReplaceAll(first, "&", "&amp;")
				first = strings.ReplaceAll(first, `\`, `\\`)
			}
			if !slices.ContainsFunc(got.Nodes, func(label string) bool { return strings.Contains(label, first) }) {
				t.Errorf("%s, %s: no node %q: %q", names[i], pictures[i].Format, first, got.Nodes)
			}
		}
	}
}
