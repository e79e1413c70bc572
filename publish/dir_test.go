package publish

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSymlinkedOut(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, link, osDisk{})
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", link); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, d, oldPlan())
	checkPublished(t, filepath.Join(dir, "a"), oldFiles)
	checkPublished(t, filepath.Join(dir, "b"), nil)
}

func TestOpenMakesParents(t *testing.T) {
	out := filepath.Join(t.TempDir(), "var", "lib", "out")
	publishOnce(t, out, oldPlan())
	checkPublished(t, out, oldFiles)
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "file"), Options{}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("file: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "dangling"), Options{}); err == nil || !strings.Contains(err.Error(), "a symbolic link to nothing") {
		t.Errorf("dangling: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "out"), Options{Group: "no such group"}); err == nil || !strings.Contains(err.Error(), `lookup group "no such group"`) {
		t.Errorf("group: %v", err)
	}
}

func TestClosed(t *testing.T) {
	d := mustOpen(t, t.TempDir(), osDisk{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Publish(context.Background(), oldPlan()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Publish: %v", err)
	}
	if err := d.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}
