package decode

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

func FuzzLoadYAML(f *testing.F) { fuzz(f, syntax.YAML) }
func FuzzLoadJSON(f *testing.F) { fuzz(f, syntax.JSON) }
func FuzzLoadText(f *testing.F) { fuzz(f, syntax.TextProto) }

func FuzzLoadBinary(f *testing.F) { fuzz(f, syntax.Binary) }

// FuzzTextTree checks that the tree of places understands every text that prototext reads.
func FuzzTextTree(f *testing.F) {
	for _, text := range []string{`version_info: 'a' "b" # c`, `resources: [{}, <>]; nonce: "\x41"`, `resources { [ a.b / c.d ] { e: -1.5e+3f } }`, `control_plane { identifier: "x" },`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := &discoveryv3.DiscoveryResponse{}
		tree := syntax.ParseText([]byte(text))
		if (resolver{}).text().Unmarshal([]byte(text), m) == nil && !tree.Whole && tree.TooDeep < 0 {
			t.Errorf("%q is not understood", text)
		}
	})
}

// fuzz checks that reading any file does not panic, returns a resource or a finding, and that all places are
// inside the file.
func fuzz(f *testing.F, format syntax.Format) {
	archives, err := filepath.Glob("../load/testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			name, quoted := strings.CutSuffix(file.Name, ".quoted")
			if syntax.FormatOf(name) != format {
				continue
			}
			data := file.Data
			if quoted {
				data = nil
				for line := range strings.Lines(string(file.Data)) {
					text, _ := strconv.Unquote(strings.TrimSpace(line))
					data = append(data, text...)
				}
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewSource("file", format, data, SourceOptions{})
		got := s.Decode(nil)
		lines := strings.Split(string(s.Data()), "\n")
		check := func(p diag.Position, what string) {
			t.Helper()
			if format == syntax.Binary && p.Line == 0 && p.Column == 0 {
				return
			}
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Errorf("%s: %d:%d is outside of the file", what, p.Line, p.Column)
			}
		}
		for _, d := range got.Diagnostics() {
			check(d.Position, d.Message)
			for _, r := range d.Related {
				check(r.Position, d.Message)
			}
			if d.Message == "" || strings.ContainsAny(d.Message, "\n\r") || !utf8.ValidString(d.Message) {
				t.Errorf("message %q", d.Message)
			}
		}
		for _, r := range got.Resources {
			xds.Walk(r.Message(), func(n *xds.Node) { check(r.Origin.Range(n.Path()).Position, string(n.Path())) })
			canonical, err := r.Canonical()
			if want, failed := xds.Marshal(r.Message()); !bytes.Equal(canonical, want) || (err == nil) != (failed == nil) {
				t.Errorf("%s: Canonical gives %q, %v; Marshal gives %q, %v", r.Key, canonical, err, want, failed)
			}
		}
		if !got.Diagnostics().HasErrors() {
			return
		}
		var b strings.Builder
		line := func(p diag.Position) (string, bool) { return s.Shown(p.Line) }
		if err := diag.WriteText(&b, got.Diagnostics(), diag.TextOptions{Line: line}); err != nil {
			t.Error(err)
		}
	})
}
