package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBoundsPage: each bound of docs/evidence/bounds.md names tests, and these tests exist.
func TestBoundsPage(t *testing.T) {
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
	text := page(t, "docs/evidence/bounds.md")
	rows := regexp.MustCompile(`(?m)^\| [^|-][^|]* \|(.*)\|$`).FindAllStringSubmatch(text, -1)
	if len(rows) < 20 {
		t.Fatalf("%d rows were found", len(rows))
	}
	for _, row := range rows {
		if strings.TrimSpace(row[1]) == "test" {
			continue
		}
		tests := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", row[0])
		}
		for _, test := range tests {
			_, err := os.Stat(filepath.Join(root, "cmd/xdspub/testdata/script", test[1]+".txtar"))
			if err != nil && !strings.Contains(code.String(), "func "+test[1]+"(t *testing.T)") && !strings.Contains(code.String(), "func "+test[1]+"(f *testing.F)") {
				t.Errorf("there is no test %s: %s", test[1], row[0])
			}
		}
	}
}
