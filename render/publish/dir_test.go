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

// TestSymlinkedOut turns the link that leads to the output directory. A Dir that was opened before must publish
// neither into the old directory nor into the new one.
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
	mustPublish(t, d, oldPlan())
	checkPublished(t, filepath.Join(dir, "a"), oldFiles)
	if err := errors.Join(os.Remove(link), os.Symlink("b", link)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Publish(t.Context(), newPlan()); !errors.Is(err, ErrLost) || !d.Lost() {
		t.Errorf("turned: %v, want ErrLost", err)
	}
	checkPublished(t, filepath.Join(dir, "a"), oldFiles)
	checkPublished(t, filepath.Join(dir, "b"), nil)
	d.Close()
	d = mustOpen(t, link, osDisk{})
	mustPublish(t, d, newPlan())
	checkPublished(t, filepath.Join(dir, "b"), newFiles)
	checkPublished(t, filepath.Join(dir, "a"), oldFiles)
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
	if _, err := Open(filepath.Join(dir, "dangling"), Options{}); err == nil || !strings.Contains(err.Error(), "a symbolic link that leads nowhere") {
		t.Errorf("dangling: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "out"), Options{Group: "no such group"}); err == nil || !strings.Contains(err.Error(), `no group "no such group" on this machine`) {
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
	for name, err := range map[string]error{"Release": d.Release(), "Recover": recovered(d)} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

// TestLost removes or replaces the open output directory. The lock goes with the directory, so a new writer may
// have opened the path.
func TestLost(t *testing.T) {
	for name, take := range map[string]func(out string) error{
		"all of it":   os.RemoveAll,
		"the records": func(out string) error { return os.RemoveAll(filepath.Join(out, ".xdspub")) },
		"replaced": func(out string) error {
			return errors.Join(os.Rename(out, out+".old"), os.Mkdir(out, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			plan := Plan{Steps: []Step{{Name: "s", Write: []File{{Path: "cds/cds.json", Data: []byte("{}")}}}}}
			first, err := Open(out, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			if err := take(out); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Publish(t.Context(), plan); !errors.Is(err, ErrLost) {
				t.Fatalf("%v, want ErrLost", err)
			}
			second, err := Open(out, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			if _, err := second.Publish(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Publish(t.Context(), plan); !errors.Is(err, ErrLost) {
				t.Errorf("with another writer there: %v, want ErrLost", err)
			}
		})
	}
}
