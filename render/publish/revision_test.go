package publish

import (
	"path/filepath"
	"testing"
)

// TestSetRevision checks that SetRevision records the commit of the published snapshot once, and changes
// nothing else in the record. A trusting Reader has the commit too.
func TestSetRevision(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	d, err := Open(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	set := func(snapshot, commit, want string) {
		t.Helper()
		if err := d.SetRevision(snapshot, commit); err != nil {
			t.Error(err)
		}
		d.Reader().Trust(true)
		known, kerr := d.Reader().Manifest()
		d.Reader().Trust(false)
		m, err := ReadManifest(out)
		if err != nil || kerr != nil || m.Revision != want || known.Revision != want {
			t.Errorf("%s of %s: %v %v, %q and %q on record, want %q", commit, snapshot, err, kerr, m.Revision, known.Revision, want)
		}
	}
	set("s1", "before", "") // nothing is published
	p := state1()
	if _, err := d.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	set("s2", "other", "")
	set("s1", "", "")
	set("s1", "first", "first")
	set("s1", "second", "second")
	set("s1", "", "second")
	m, err := ReadManifest(out)
	if err != nil || m.Snapshot != "s1" || len(m.Files.Names()) != len(p.Manifest.Files.Names())+len(p.files()) {
		t.Errorf("%v: %+v", err, m)
	}
}
