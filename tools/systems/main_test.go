package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: a file and a test name a field that Linux has and macOS lacks.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module sample\n\ngo 1.24\n",
		"p.go":      "package sample\n\nimport \"syscall\"\n\nfunc nanoseconds(s *syscall.Stat_t) int64 { return s.Mtim.Nano() }\n",
		"p_test.go": "package sample\n\nimport \"syscall\"\n\nvar _ = syscall.Stat_t{}.Ctim\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string][]string{"linux": nil, "darwin": {"p.go:5:", "p_test.go:5:"}} {
		failed, err := check(dir, system, []string{"./..."})
		if err != nil || len(failed) != len(want) {
			t.Errorf("%s: %q, %v; want errors at %q", system, failed, err, want)
			continue
		}
		for i, place := range want {
			if !strings.Contains(failed[i], place) {
				t.Errorf("%s: %q, want an error at %s", system, failed[i], place)
			}
		}
	}
}
