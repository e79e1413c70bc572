package safefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	dir := t.TempDir()
	const files = 3000
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d", files-i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	count := func(int) error { return nil }
	all := func(fs.DirEntry) bool { return true }
	ctx := context.Background()

	met := 0
	got, err := List(ctx, dir, func(names int) error { met += names; return nil },
		func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), "7") })
	if err != nil || met != files || len(got) != files/10 {
		t.Errorf("List: %d kept, %d met, %v; want %d, %d", len(got), met, err, files/10, files)
	}
	if !slices.IsSortedFunc(got, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }) {
		t.Error("List is not sorted by name")
	}

	tooMany := errors.New("too many")
	met = 0
	if _, err := List(ctx, dir, func(names int) error {
		if met += names; met > 10 {
			return tooMany
		}
		return nil
	}, all); !errors.Is(err, tooMany) || met == files {
		t.Errorf("List with an error of count: %v after %d of %d names", err, met, files)
	}

	ended, end := context.WithCancel(ctx)
	end()
	if _, err := List(ended, dir, count, all); !errors.Is(err, context.Canceled) {
		t.Errorf("List once ctx has ended: %v", err)
	}
	if _, err := List(ctx, filepath.Join(dir, "0001"), count, all); err == nil {
		t.Error("List takes a file for a folder")
	}
}
