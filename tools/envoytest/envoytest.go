// Package envoytest runs the real Envoy for tests. A test that asks for Envoy's reaction to a file gives Envoy
// the file; package envoytest has no mocks.
//
// A test starts an Envoy on a bootstrap, and polls its admin interface:
//
//	e := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
//	envoytest.Eventually(t, time.Minute, "the new clusters are in", func() (bool, string) {
//		version := e.TextStat(t, "cluster_manager.cds.version_text")
//		return version == "v2", "version " + version
//	})
//
// The bootstrap needs an admin section. Port 0 is the best choice, because envoytest reads the address back
// from Envoy. The process, its files and its ports end with the test. An Envoy that dies early fails the test.
// A failed test prints the end of Envoy's log; go test -artifacts keeps the whole log.
//
// If Envoy is not installed, tests skip; with CI=true or XDSPUB_REQUIRE_ENVOY=1, tests fail.
package envoytest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Binary returns the path of the Envoy to run: XDSPUB_ENVOY, or the Envoy that scripts/envoy has installed. Binary
// downloads nothing. Without Envoy, Binary skips the test, or fails it if CI=true or XDSPUB_REQUIRE_ENVOY=1.
func Binary(t testing.TB) string {
	t.Helper()
	return binary(t)
}

// Version is Binary for the Envoy of a version, such as 1.39.3.
func Version(t testing.TB, version string) string {
	t.Helper()
	return binary(t, version)
}

func binary(t testing.TB, version ...string) string {
	t.Helper()
	install := strings.Join(append([]string{"scripts/envoy"}, version...), " ")
	out := fetched(t, os.Getenv("XDSPUB_REQUIRE_ENVOY") == "1", "THE REAL ENVOY IS MISSING, NOTHING WAS TESTED. Install it: "+install, "envoy", version...)
	// XDSPUB_ENVOY may be a name in PATH. The path becomes absolute, because each Envoy has its own working
	// directory.
	binary, err := exec.LookPath(out)
	if err != nil {
		t.Fatal(err)
	}
	binary, err = filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Fetched returns the path that a script of scripts/ prints for a program, such as Prometheus. If the script has not
// fetched the program, Fetched skips the test, or fails it if CI=true, with what is missing.
func Fetched(t testing.TB, missing, script string) string {
	t.Helper()
	return fetched(t, false, missing, script)
}

func fetched(t testing.TB, required bool, missing, script string, args ...string) string {
	t.Helper()
	line := append([]string{filepath.Join(moduleRoot(t), "scripts", script), "--no-install"}, args...)
	key := strings.Join(append(line, os.Getenv("XDSPUB_ENVOY")), "\x00")
	if path, ok := found.Load(key); ok {
		return path.(string)
	}
	out, err := exec.Command(line[0], line[1:]...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		missing += "\n" + string(failed.Stderr)
		if required || os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSuffix(string(out), "\n")
	found.Store(key, path)
	return path
}

// found maps a command line and XDSPUB_ENVOY to the output of the script. scripts/envoy starts an Envoy, which can take
// longer than a test.
var found sync.Map

// moduleRoot returns the nearest directory with a go.mod, from the working directory up. go test runs the tests of
// a package in its directory.
func moduleRoot(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod in %s or above", start)
		}
	}
}

// Publish writes a file by a rename, which is the only change that Envoy sees, and makes its folder.
func Publish(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	staged := filepath.Join(t.TempDir(), "staged")
	if err := os.WriteFile(staged, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(staged, path); err != nil {
		t.Fatal(err)
	}
}

// Eventually calls cond again and again until ok is true. After the deadline, it ends the test with what and the
// last state. Eventually is for events outside of this process that no channel can report. cond runs on the
// goroutine of the caller, and may call t.Fatal.
func Eventually(t testing.TB, deadline time.Duration, what string, cond func() (ok bool, state string)) {
	t.Helper()
	late := time.After(deadline)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, state := cond()
		if ok {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: not within %v; last state: %s", what, deadline, state)
		case <-tick.C:
		}
	}
}
