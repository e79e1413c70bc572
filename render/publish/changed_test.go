package publish

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestChanged checks that Changed notices each change of a file or its folder.
func TestChanged(t *testing.T) {
	out := t.TempDir()
	const file = "eds/web/eds.json"
	path := filepath.Join(out, file)
	if at := Changed(filepath.Join(out, "none"), file); time.Since(at) > time.Minute {
		t.Errorf("no directory: %v", at)
	}
	before := time.Now()
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"it is there", func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("1"), 0o644))
		}},
		{"written again", func() error { return os.WriteFile(path, []byte("2"), 0o644) }},
		{"its time set back", func() error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) }},
		{"renamed over by one that was written long before", func() error {
			return errors.Join(os.WriteFile(path+"~", nil, 0o644), os.Rename(path+"~", path))
		}},
		{"gone", func() error { return os.Remove(path) }},
		{"its folder replaced", func() error {
			return errors.Join(os.RemoveAll(filepath.Dir(path)), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("2"), 0o644))
		}},
	} {
		for past := false; !past; past = Changed(out, "clock").After(before) { // until the clock of the file system has advanced
			if err := os.WriteFile(filepath.Join(out, "clock"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		at := Changed(out, file)
		if !at.After(before) {
			t.Errorf("%s: %v, not after %v", c.what, at, before)
		}
		before = at
	}
}
