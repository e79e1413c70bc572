package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestRun searches the output for texts in an order, and for texts that must be absent.
func TestRun(t *testing.T) {
	t.Chdir(module(t))
	tests := []struct {
		name      string
		arguments []string
		status    int
		want      []string // in this order
		never     []string
	}{
		{"all is well", []string{"./good", "./none"}, 0,
			[]string{"ok  \tsample/good\t"},
			[]string{"remark", "moon", "PASS", "==="}},
		{"a test fails", []string{"./good", "./bad"}, 1,
			[]string{"--- FAIL: TestBad (", "printed beside the log", "--- FAIL: TestBad/bad (", "bad_test.go:14: seven is not eight", "FAIL\tsample/bad\t"},
			[]string{"remark", "nor this one", "=== "}},
		{"two tests fail", []string{"./bad"}, 1,
			[]string{"--- FAIL: TestAlso (", "bad_test.go:19: so is this", "FAIL\nFAIL\tsample/bad\t"}, nil},
		{"a panic", []string{"./panics"}, 1,
			[]string{"--- FAIL: TestPanics (", "panic: out of cheese", "goroutine ", "panics_test.go:7", "FAIL\tsample/panics\t"},
			[]string{"remark"}},
		{"the program ends", []string{"./exits"}, 1,
			[]string{"FAIL\tsample/exits\t"}, nil},
		{"a timeout", []string{"-timeout", "1s", "./hangs"}, 1,
			[]string{"panic: test timed out after 1s", "running tests:", "TestHangs (", "sample/hangs.hang(", "hangs_test.go:7", "FAIL\tsample/hangs\t"}, nil},
		{"does not build", []string{"./broken", "./good"}, 1,
			[]string{"broken_test.go:5:33: undefined: undefined", "FAIL\tsample/broken [build failed]"}, nil},
		{"no such package", []string{"./missing"}, 1,
			[]string{"missing", "FAIL\t"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			status, err := run(filepath.Join(t.TempDir(), "events"), append([]string{"-count", "1", "-vet", "off"}, tt.arguments...), &out)
			if err != nil || status != tt.status {
				t.Errorf("status %d, %v; want status %d", status, err, tt.status)
			}
			rest := out.String()
			for _, want := range tt.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("no %q, or not there, in\n%s", want, &out)
					continue
				}
				rest = after
			}
			for _, never := range tt.never {
				if strings.Contains(out.String(), never) {
					t.Errorf("%q in\n%s", never, &out)
				}
			}
		})
	}
}

// TestCutOff: the events end within a package, because go test was killed.
func TestCutOff(t *testing.T) {
	var out bytes.Buffer
	err := follow(strings.NewReader(`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"half a\n"}
not JSON
`), &out)
	if want := "not JSON\nhalf a\n"; err != nil || out.String() != want {
		t.Errorf("%q, %v; want %q", &out, err, want)
	}
}

func TestSum(t *testing.T) {
	dir := module(t)
	t.Chdir(dir)
	long, short := filepath.Join(dir, "long"), filepath.Join(dir, "short")
	for events, arguments := range map[string][]string{long: {"./good"}, short: {"-short", "./good"}} {
		if status, err := run(events, append([]string{"-count", "1"}, arguments...), &bytes.Buffer{}); err != nil || status != 0 {
			t.Fatalf("status %d, %v", status, err)
		}
	}
	const two = "sample/good TestParts/two needs a moon\n"
	tests := []struct {
		name    string
		events  []string
		allowed string
		ci      bool
		status  int
		want    string // after the times
		err     string
	}{
		{"skipped", []string{long}, "", false, 0, "NOT TESTED:\nsample/good TestParts/two: good_test.go:9: NOT TESTED, needs a moon\n", ""},
		{"skipped in CI", []string{long}, "", true, 1, "in CI this test must run", ""},
		{"allowed in CI", []string{long}, "# why\n\n" + two, true, 0, "needs a moon\n", ""},
		{"tested in another run", []string{long, short}, two, true, 0, "", ""},
		{"tested in an earlier run", []string{short, long}, two, true, 0, "", ""},
		{"skipped in each run", []string{short}, two, true, 1, "TestParts/three: good_test.go:12: takes its time\n", ""},
		{"no such test", []string{long}, two + "sample/good TestGone needs a sun\n", false, 1, "sample/good TestGone: there is no such test", ""},
		{"of a package that did not run", []string{long}, two + "sample/other TestGone needs a sun\n", true, 0, "", ""},
		{"no reason", []string{long}, "sample/good TestGone\n", false, 0, "", "allowed:1: not a package, a test and a reason"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			allowed := filepath.Join(t.TempDir(), "allowed")
			if err := os.WriteFile(allowed, []byte(tt.allowed), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			status, err := sum(allowed, tt.events, &out, tt.ci)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v; want %q", err, tt.err)
				}
				return
			case err != nil || status != tt.status:
				t.Errorf("status %d, %v; want status %d", status, err, tt.status)
			}
			if !strings.Contains(out.String(), " s  sample/good\n") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("no time, or no %q, in\n%s", tt.want, &out)
			}
		})
	}
}

// module writes testdata/module.txtar and returns its directory.
func module(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/module.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
