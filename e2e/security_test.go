package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/tools/golden"
)

// boundSection is a section of testdata/bounds.yaml.
type boundSection struct {
	Title, Text string
	Rows        []struct {
		Bound string
		Tests []string // tests of Go, and scripts of cmd/xdspub
	}
}

// TestBoundsPage checks that each row of testdata/bounds.yaml names tests, that these tests exist, and that
// docs/evidence/bounds.md has the rows.
func TestBoundsPage(t *testing.T) {
	var sections []boundSection
	text, err := os.ReadFile("testdata/bounds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &sections); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(page(t, "docs/evidence/bounds.md"), "\n## ")
	var b strings.Builder
	b.WriteString(head)
	code := allTests(t)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n", s.Title)
		if s.Text != "" {
			fmt.Fprintf(&b, "\n%s\n", s.Text)
		}
		b.WriteString("\n| bound | test |\n|---|---|\n")
		for _, row := range s.Rows {
			if len(row.Tests) == 0 {
				t.Errorf("no test: %s", row.Bound)
			}
			for _, test := range row.Tests {
				_, err := os.Stat(filepath.Join(root, "cmd/xdspub/testdata/script", test+".txtar"))
				if err != nil && !strings.Contains(code, "func "+test+"(t *testing.T)") && !strings.Contains(code, "func "+test+"(f *testing.F)") {
					t.Errorf("there is no test %s: %s", test, row.Bound)
				}
			}
			fmt.Fprintf(&b, "| %s | `%s` |\n", row.Bound, strings.Join(row.Tests, "`, `"))
		}
	}
	golden.Compare(t, "../../docs/evidence/bounds.md", b.String())
}

// allTests returns the text of all tests.
func allTests(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	return code.String()
}
