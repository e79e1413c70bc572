package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLeftovers: what a killed writer has left is found without a lock, and Open removes it. What a record needs is no
// leftover.
func TestLeftovers(t *testing.T) {
	out := t.TempDir()
	d, err := Open(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{
		Steps:    []Step{{Name: "all", Write: []File{{Path: "cds/cds.json", Data: []byte("{}")}, {Path: "rds/a/rds.json", Data: []byte("{}")}}}},
		Manifest: Manifest{Format: "json", EnvoyPath: "/x", Snapshot: "1"},
	}
	if _, err := d.Publish(context.Background(), plan); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	has := func(want ...string) {
		t.Helper()
		if got, err := Leftovers(out); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	has()
	if err := os.WriteFile(filepath.Join(out, ".xdspub/stage/0001"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	has(".xdspub/stage/0001")
	if d, err = Open(out, Options{}); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	has()
	if inode, err := LockInode(out); inode == 0 || err != nil {
		t.Errorf("the lock file has the inode %d, %v", inode, err)
	}
	if list, err := Apart(out, []string{"cds/cds.json", "rds/a/rds.json"}, 9); len(list) > 0 || err != nil {
		t.Errorf("apart: %v, %v", list, err)
	}
	if list, err := Apart(t.TempDir(), []string{"cds/cds.json"}, 9); len(list) > 0 || err != nil {
		t.Errorf("in a directory without a record: %v, %v", list, err)
	}
}

// TestRemoveEmpty: only an empty folder is removed, even if something else takes its place after EmptyFolders.
func TestRemoveEmpty(t *testing.T) {
	out, elsewhere := t.TempDir(), t.TempDir()
	d, err := Open(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(out, name) }
	for _, name := range []string{"rds/empty", "rds/full/below", "rds/turned", "rds/gone"} {
		err = errors.Join(err, os.MkdirAll(at(name), 0o755))
	}
	err = errors.Join(err, os.WriteFile(at("rds/file"), nil, 0o600), os.Symlink(elsewhere, at("rds/link")))
	if err != nil {
		t.Fatal(err)
	}
	empty, err := EmptyFolders(out, "rds")
	if want := []string{"rds/empty", "rds/gone", "rds/turned"}; err != nil || !slices.Equal(empty, want) {
		t.Fatalf("%v, %v, want %v", empty, err, want)
	}
	if none, err := EmptyFolders(out, "eds"); len(none) > 0 || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	if err := errors.Join(os.Remove(at("rds/gone")), os.Remove(at("rds/turned")), os.Symlink(elsewhere, at("rds/turned"))); err != nil {
		t.Fatal(err)
	}
	removed, err := d.RemoveEmpty(append(empty, "rds/full", "rds/file", "rds/link"))
	if want := []string{"rds/empty"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %v, %v, want %v", removed, err, want)
	}
	for _, name := range []string{"rds/full/below", "rds/file", "rds/link", "rds/turned"} {
		if _, err := os.Lstat(at(name)); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.RemoveEmpty(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
