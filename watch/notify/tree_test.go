package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func makeTree(t *testing.T, names ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestWatchedNames checks the limit for names in one look, which includes ignored names.
func TestWatchedNames(t *testing.T) {
	root := makeTree(t, "a/1", "a/.2", "b/3")
	for _, always := range []bool{false, true} {
		for most, refused := range map[int]bool{4: true, 5: false} {
			tree := &tree{root: root, always: always, names: most, skip: func(name string) bool { return name == ".2" }, warn: func(err error) { t.Error(err) }}
			err := tree.rewatch(t.Context())
			if refused != (err != nil && err.Error() == "watch "+root+": the tree has too many files and folders: more than 4") {
				t.Errorf("%d: %v", most, err)
			}
			if err := tree.rewatch(t.Context()); (err != nil) != refused {
				t.Errorf("%d, once more: %v", most, err)
			}
			tree.close()
		}
	}
}

// TestScanEnded checks that a scan ends when its context ends.
func TestScanEnded(t *testing.T) {
	root := makeTree(t, "a/1", "b/2", "c/3")
	ctx, cancel := context.WithCancel(t.Context())
	var asked []string
	_, err := New(ctx, root, Options{Ignore: func(path string) bool {
		if below, ok := strings.CutPrefix(path, filepath.Join(root, "a")+"/"); ok && below == "1" {
			cancel()
		}
		asked = append(asked, path)
		return false
	}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, path := range asked {
		if rel, _ := filepath.Rel(root, path); rel == "b/2" || rel == "c/3" {
			t.Errorf("%s was looked at", rel)
		}
	}
}

// TestRootGoesInALook checks that a root that is removed during a scan is reported as missing, not as a file.
func TestRootGoesInALook(t *testing.T) {
	root := filepath.Join(makeTree(t, "root/a"), "root")
	done, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				stopped <- nil
				return
			default:
				if err := errors.Join(os.Rename(root, root+"~"), os.Rename(root+"~", root)); err != nil {
					stopped <- err
					return
				}
			}
		}
	}()
	tree := &tree{root: root, always: true, names: maxNames, warn: func(err error) { t.Error(err) }}
	want, missing := "watch: stat "+root+": no such file or directory", 0
	for range 5000 {
		if err := tree.rewatch(t.Context()); err != nil && err.Error() != want {
			t.Fatal(err)
		} else if err != nil {
			missing++
		}
		if (tree.info == nil) != (len(tree.byPath) == 0) {
			t.Fatal("a root is remembered that was not watched")
		}
	}
	close(done)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	t.Logf("missing in %d of 5000 looks", missing)
}
