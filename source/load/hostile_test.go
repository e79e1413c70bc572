//go:build unix

package load_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/xds"
)

const secretFrom = `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: a
generic_secret: {secret: {filename: "%s"}}
`

// said returns the findings of a result as lines.
func said(r *load.Result) string {
	var b strings.Builder
	for _, d := range r.Diagnostics {
		b.WriteString(d.Code + " " + d.Message + " " + d.Help + "\n")
	}
	return b.String()
}

// TestOutside checks that no resource inlines a file from outside of the tree, whatever the path.
func TestOutside(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "outside/secret", "hunter2", "tree/inside/secret", "fine", "tree/deep/x", "")
	link := func(target, name string) { t.Helper(); must(os.Symlink(target, filepath.Join(dir, name))) }
	link("../outside/secret", "tree/file")
	link("../outside", "tree/folder")
	link(filepath.Join(dir, "tree/inside"), "tree/absolute")
	link("inside/secret", "tree/..data")
	link("..data", "tree/configmap")
	link("tree", "root")
	for _, tt := range []struct{ name, want, allowed string }{
		{"../outside/secret", "outside-tree", "hunter2"},
		{"deep/../../outside/secret", "outside-tree", "hunter2"},
		{"file", "outside-tree", "hunter2"},
		{"folder/secret", "outside-tree", "hunter2"},
		{"../tree/inside/secret", "fine", "fine"},
		{"inside/../inside/secret", "fine", "fine"},
		{"absolute/secret", "fine", "fine"},
		{"configmap", "fine", "fine"},
		{"inside", "missing-file", "missing-file"},
	} {
		for _, root := range []string{"tree", "root"} {
			for _, allow := range [][]string{nil, {filepath.Join(dir, "outside")}} {
				write(t, dir, "tree/a.yaml", strings.ReplaceAll(secretFrom, "%s", tt.name))
				result := mustLoad(t, load.New(load.Options{Allow: allow, Ignore: []string{"folder", "absolute"}}), filepath.Join(dir, root))
				got := said(result)
				for _, r := range result.Resources() {
					got += prototext.Format(r.Message())
				}
				want := tt.want
				if allow != nil {
					want = tt.allowed
				}
				if !strings.Contains(got, want) || allow == nil && strings.Contains(got, "hunter2") {
					t.Errorf("%s in %s, allowed %q: %s, want %s", tt.name, root, allow, got, want)
				}
			}
		}
	}
}

// TestKernelFiles checks that no relative path and no link leads to files of /proc, even if their folder is
// allowed.
func TestKernelFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED, needs Linux")
	}
	t.Setenv("TOKEN", "hunter2")
	dir := t.TempDir()
	up := strings.Repeat("../", strings.Count(dir, "/")+2)
	for _, name := range []string{"/proc/self/environ", "/proc/self/pagemap", "/proc/kmsg"} {
		write(t, dir, "tree/a.yaml", strings.ReplaceAll(secretFrom, "%s", up+name))
		_ = os.Remove(filepath.Join(dir, "tree/link.yaml"))
		if err := os.Symlink(name, filepath.Join(dir, "tree/link.yaml")); err != nil {
			t.Fatal(err)
		}
		result := mustLoad(t, load.New(load.Options{}), filepath.Join(dir, "tree"))
		if got := said(result); strings.Count(got, "outside-tree") != 2 || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", name, got)
		}
		_, err := load.New(load.Options{Allow: []string{"/proc"}}).Load(t.Context(), filepath.Join(dir, "tree"))
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s, allowed: %v", name, err)
		}
	}
}

// TestSparse checks that a large file is an error before Load reads it.
func TestSparse(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "")
	if err := os.Truncate(filepath.Join(dir, "a.yaml"), 1<<30); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result := mustLoad(t, load.New(load.Options{}), dir)
	runtime.ReadMemStats(&after)
	if got := said(result); !strings.Contains(got, "too-large the file has 1073741824 bytes, the limit is 134217728") {
		t.Error(got)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

// TestNamedPipe checks that no function reads a pipe that the user names as a source, a settings file or a
// bootstrap.
func TestNamedPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if decode.HoldsBootstrap(name) {
		t.Error("a pipe is a bootstrap")
	}
	_, err := load.New(load.Options{}).Load(t.Context(), name)
	_, _, config := load.Config(name)
	_, _, bootstrap := load.Bootstrap(name, nil)
	_, subscribed := load.Subscribed(name, xds.Cluster, nil, nil)
	_, data := decode.ReadData(name)
	_, open := load.Open(name)
	for what, err := range map[string]error{"load": err, "config": config, "bootstrap": bootstrap, "subscribed": subscribed, "data": data, "open": open} {
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestEnded checks that Load returns the error of a context that has ended.
func TestEnded(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", cluster("a"), "b/c.yaml", cluster("b"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := load.New(load.Options{}).Load(ctx, dir); err != ctx.Err() {
		t.Error(err)
	}
}
