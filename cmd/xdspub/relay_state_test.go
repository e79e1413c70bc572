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

// TestStateDirs checks that the most recently used directories stay if their aggregates have published, at most as many
// as allowed, and that nothing else is removed.
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
	enter := func(n int) func() {
		dir, leave, err := s.enter(t.Context(), key(n))
		if err != nil || dir != filepath.Join(state, "aggregates", key(n)) {
			t.Fatal(dir, err)
		}
		return func() {
			if err := leave(); err != nil {
				t.Error(err)
			}
		}
	}
	publish := func(n int) {
		if err := os.MkdirAll(filepath.Join(s.dir, key(n), ".xdspub/history/entry"), 0o700); err != nil {
			t.Fatal(err)
		}
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
		leave := enter(n)
		publish(n)
		leave()
		at := time.Now().Add(time.Duration(n-10) * time.Second) // a file system may have coarse times
		if err := os.Chtimes(filepath.Join(s.dir, key(n)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	left := []string{key(1), key(3), key(4), key(8), key(9), "backup"}
	if got := list(); !slices.Equal(got, left) {
		t.Errorf("%q, not %q", got, left)
	}
	for n := 10; n < 13; n++ { // the node of a client that invents nodes while the control plane is gone
		defer enter(n)()
	}
	enter(4)() // counts no directory that is in use
	for _, n := range []int{3, 4} {
		if !slices.Contains(list(), key(n)) {
			t.Fatal("aggregates that have published nothing remove the directory of another one")
		}
	}
	for n := 13; n < 16; n++ {
		enter(n)()
	}
	if got := slices.DeleteFunc(list(), func(name string) bool { return name >= key(10) && name < key(13) }); !slices.Equal(got, left) {
		t.Errorf("after aggregates that have published nothing: %q, not %q", got, left)
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
	publish(1)
	stays()
	<-entered

	// An aggregate that has run for long was used last when it ends, not when it began.
	for n := 5; n < 7; n++ {
		leave := enter(n)
		publish(n)
		if n == 6 {
			long := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(s.dir, key(n)), long, long); err != nil {
				t.Fatal(err)
			}
		}
		leave()
	}
	if got := list(); !slices.Contains(got, key(6)) {
		t.Errorf("%q, without the aggregate that was used last", got)
	}
}
