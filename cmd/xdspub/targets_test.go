package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTargetsAreParams checks with random variants that a target gets the same bytes as render --param with its
// parameters, and is invalid if that render is.
func TestTargetsAreParams(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	published, refused := 0, 0
	for range 12 {
		dir := t.TempDir()
		src := filepath.Join(dir, "src")
		targets := writeVaried(t, random, src)
		var all bytes.Buffer
		run([]string{"xdspub", "render", "--quiet", "--step-gap", "0s", "--out", filepath.Join(dir, "out"), src}, io.Discard, &all)
		if err := os.Remove(filepath.Join(src, "xdspub.yaml")); err != nil {
			t.Fatal(err)
		}
		for name, of := range targets {
			var one bytes.Buffer
			alone := filepath.Join(dir, "alone", name)
			status := run(append([]string{"xdspub", "render", "--quiet", "--step-gap", "0s", "--out", alone, src}, of...), io.Discard, &one)
			if status == exitOK {
				published++
			} else {
				refused++
			}
			if diff := cmp.Diff(filesIn(t, alone), filesIn(t, filepath.Join(dir, "out", name))); diff != "" {
				t.Errorf("target %s, %s (-alone +target):\n%s\nalone:\n%s\nall:\n%s", name, of, diff, &one, &all)
			}
		}
	}
	if published < 10 || refused < 3 {
		t.Errorf("%d were published, and %d refused", published, refused)
	}
}

// writeVaried writes a random source tree with targets, and returns the options of render for each of them.
func writeVaried(t *testing.T, r *rand.Rand, src string) map[string][]string {
	t.Helper()
	var text, settings strings.Builder
	cluster := func(name, constraints string, seconds int) {
		const typ = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster`
		body := fmt.Sprintf("{%s, name: %s, type: STATIC, connect_timeout: %ds}", typ, name, seconds)
		if constraints != "" {
			body = fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: %s, dynamic_parameter_constraints: %s}, resource: %s}`, name, constraints, body)
		}
		fmt.Fprintf(&text, "- %s\n", body)
	}
	is := func(key, value string) string { return fmt.Sprintf("{constraint: {key: %s, value: %s}}", key, value) }
	for i := range 5 {
		name, key := fmt.Sprintf("c%d", i), []string{"env", "region"}[r.IntN(2)]
		switch r.IntN(6) {
		case 0:
			cluster(name, "", i+1)
		case 1: // only for some clients
			cluster(name, is("env", "b"), i+1)
			cluster(name, is("env", "a"), i+2)
		default:
			cluster(name, is(key, "a"), i+1)
			cluster(name, "{not_constraints: "+is(key, "a")+"}", 10+r.IntN(10))
		}
	}
	targets := make(map[string][]string)
	settings.WriteString("targets:\n")
	for i := range 1 + r.IntN(4) {
		name, env, region := fmt.Sprintf("t%d", i), []string{"a", "b", "c"}[r.IntN(3)], []string{"a", "b"}[r.IntN(2)]
		format := []string{"json", "yaml", "pb"}[r.IntN(3)]
		fmt.Fprintf(&settings, "  %s: {params: {env: %s, region: %s}, format: %s}\n", name, env, region, format)
		targets[name] = []string{"--param", "env=" + env, "--param", "region=" + region, "--format", format}
	}
	if err := os.Mkdir(src, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"all.yaml": text.String(), "xdspub.yaml": settings.String()} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return targets
}

// filesIn returns the published files of a directory; none if the directory is missing.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return nil
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".xdspub":
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
