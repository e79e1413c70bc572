package load

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpdateOnce checks that Update reads a file once if two of its paths lead to the file, such as its folder
// and a file that its resources inline.
func TestUpdateOnce(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	const secret = `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: s, generic_secret: {secret: {filename: ../data/key}}}`
	write("data/key", "1")
	write("secrets/s.yaml", secret)
	l := later()
	load(t, l, root)
	write("data/key", "2")
	must(t, os.Remove(filepath.Join(root, "secrets/s.yaml")))
	write(".s.yaml", secret)
	must(t, os.Symlink("../.s.yaml", filepath.Join(root, "secrets/s.yaml")))
	got, err := l.Update(t.Context(), root, []string{filepath.Join(root, "data/key"), filepath.Join(root, "secrets")})
	must(t, err)
	want := load(t, later(), root)
	if diff := cmp.Diff(inFull(want), inFull(got)); diff != "" {
		t.Errorf("(-cold +update):\n%s", diff)
	}
}
