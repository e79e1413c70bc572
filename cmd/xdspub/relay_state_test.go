package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestStateDirs keeps the directories of as many aggregates as allowed, the ones that were used last, and removes
// nothing else.
func TestStateDirs(t *testing.T) {
	state := t.TempDir()
	s := newStateDirs(state, 2)
	key := func(n int) string { return fmt.Sprintf("%032x", n) }
	list := func() (names []string) {
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	enter := func(n int) (leave func()) {
		dir, leave, err := s.enter(t.Context(), key(n))
		if err != nil || dir != filepath.Join(state, "aggregates", key(n)) {
			t.Fatal(dir, err)
		}
		return leave
	}
	stays := enter(1)
	elsewhere := t.TempDir()
	if err := errors.Join(
		os.Mkdir(filepath.Join(s.dir, "backup"), 0o700), os.Symlink(elsewhere, filepath.Join(s.dir, key(9))),
		os.WriteFile(filepath.Join(s.dir, key(8)), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for n := 2; n < 5; n++ {
		enter(n)()
		at := time.Now().Add(time.Duration(n-10) * time.Second) // a file system may have coarse times
		if err := os.Chtimes(filepath.Join(s.dir, key(n)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := list(), []string{key(1), key(4), key(8), key(9), "backup"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if _, _, err := s.enter(t.Context(), key(9)); err == nil {
		t.Error("a link that leads elsewhere is the directory of an aggregate")
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error(err)
	}

	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := s.enter(ended, key(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a directory in use: %v", err)
	}
	entered := make(chan struct{})
	go func() {
		defer close(entered)
		enter(1)()
	}()
	stays()
	<-entered
}
