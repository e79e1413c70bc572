package safefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSignature: the Signature of a file changes even if somebody tries to hide a change of the file.
func TestSignature(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	must(t, os.WriteFile(path, []byte("1"), 0o600))
	of := func() Signature {
		info, err := os.Stat(path)
		must(t, err)
		return SignatureOf(info)
	}
	first := of()
	if of() != first {
		t.Error("nothing happened, and the signature is another one")
	}
	info, err := os.Stat(path)
	must(t, err)
	for name, change := range map[string]func(){
		"written": func() { must(t, os.WriteFile(path, []byte("2"), 0o600)) },
		"replaced": func() {
			must(t, os.WriteFile(other, []byte("3"), 0o600))
			must(t, os.Rename(other, path))
		},
		"written by another name": func() {
			must(t, os.Link(path, other))
			must(t, os.WriteFile(other, []byte("4"), 0o600))
			must(t, os.Remove(other))
		},
	} {
		before := of()
		for ok := false; !ok; ok = of() != before { // wait for the next step of the file system's clock
			change()
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}
		t.Logf("%s: %+v", name, of())
	}
}

func TestSettled(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).UnixNano() }
	for _, c := range []struct {
		signature Signature
		want      bool
	}{
		{Signature{inode: 1, modified: at(-time.Hour), changed: at(-time.Hour)}, true},
		{Signature{inode: 1, modified: at(-time.Hour), changed: at(-time.Second)}, false},
		{Signature{inode: 1, modified: at(-time.Second), changed: at(-time.Hour)}, false}, // the system records no time of changes
		{Signature{inode: 1, modified: at(-time.Hour), changed: at(time.Hour)}, false},    // the clock was set back
		{Signature{modified: at(-time.Hour), changed: at(-time.Hour)}, false},
		{Signature{}, false},
	} {
		if got := c.signature.Settled(now); got != c.want {
			t.Errorf("%+v: %v, want %v", c.signature, got, c.want)
		}
	}
}
