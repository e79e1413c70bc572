package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLimits: what is small as a file and large in memory is refused before it is
// parsed; a long list of resources is not.
func TestLimits(t *testing.T) {
	const response = "resources:\n"
	one := "- '@type': type.googleapis.com/envoy.service.runtime.v3.Runtime\n  name: a\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a.yaml", strings.Repeat("\n", MaxElements+1), "the file has 20000001 lines, commas and brackets"},
		{"a.json", strings.Repeat("\n", MaxElements+1), "the file has 20000001 lines, commas and brackets"},
		{"a.txtpb", strings.Repeat("\n", MaxElements+1), "the file has 20000001 lines, commas and brackets"},
		{"a.yaml", strings.Repeat("- a\n", MaxParsed+1), "a document of the file has 600001 lines"},
		{"a.yaml", "x: [" + strings.Repeat("a,", MaxParsed) + "]\n", "a document of the file has 600002 lines"},
		{"a.yaml", response + strings.Repeat(one, 100), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.name), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			result, err := New(Options{}).Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range result.Diagnostics {
				if d.Code == codeTooLarge.Name {
					got += d.Message
				}
			}
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestTotal: the files of a tree are bounded together.
func TestTotal(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("# 8 bytes"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(Options{})
	l.most = 15
	if _, err := l.Load(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "more than 15 bytes together") {
		t.Error(err)
	}
}

// TestNames: the names of a tree are bounded, those of no resources among them.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/1.md", "a/.2", "b/3.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := New(Options{})
	for most, refused := range map[int]bool{4: true, 5: false} {
		l.names = most
		_, err := l.Load(t.Context(), dir)
		if refused != (err != nil && strings.Contains(err.Error(), "/b: the source tree has more than 4 files and folders")) {
			t.Errorf("%d: %v", most, err)
		}
	}
}
