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
	"testing"
	"time"
)

// Binary returns the path of the Envoy to run: what scripts/envoy has installed, or
// XDSPUB_ENVOY. It downloads nothing. A test without Envoy ends here.
func Binary(t testing.TB) string {
	t.Helper()
	return binary(t)
}

// Version returns the path of the Envoy of a version, such as 1.39.3, as Binary does that of the
// latest.
func Version(t testing.TB, version string) string {
	t.Helper()
	return binary(t, version)
}

func binary(t testing.TB, version ...string) string {
	t.Helper()
	script := filepath.Join(moduleRoot(t), "scripts", "envoy")
	out, err := exec.Command(script, append([]string{"--no-install"}, version...)...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		install := strings.Join(append([]string{"scripts/envoy"}, version...), " ")
		missing := "THE REAL ENVOY IS MISSING, NOTHING WAS TESTED. Install it: " + install + "\n" + string(failed.Stderr)
		if os.Getenv("CI") == "true" || os.Getenv("XDSPUB_REQUIRE_ENVOY") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A name given by XDSPUB_ENVOY may be one on PATH. Made absolute, because
	// Envoy is started in a directory of its own.
	binary, err := exec.LookPath(strings.TrimSuffix(string(out), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	binary, err = filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// moduleRoot returns the nearest directory, from the working directory up, that has a
// go.mod: go test runs a package's tests in the package's directory.
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

// Publish puts a file in place by rename, the only way that Envoy sees, and makes
// its folder if need be.
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

// Eventually asks cond again and again until it says ok. When that takes longer
// than the deadline, the test fails with what was waited for and the last state.
// It is for what runs outside of this process and can't be waited for in
// another way; cond runs on the test's own goroutine and may call t.Fatal.
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
