package publish

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var layoutOfTests = map[string]string{"cds": "cds.json", "eds": "eds.json"}

// agrees checks that r returns the files and the record that are on disk.
func agrees(t *testing.T, r *Reader, out string) {
	t.Helper()
	fresh := NewReader(out)
	got, err := r.Manifest()
	want, ferr := fresh.Manifest()
	if err != nil || ferr != nil {
		t.Fatal(err, ferr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-disk +reader):\n%s", diff)
	}
	listed, err := r.List(layoutOfTests)
	files, ferr := fresh.List(layoutOfTests)
	if err != nil || ferr != nil {
		t.Fatal(err, ferr)
	}
	if diff := cmp.Diff(files, listed); diff != "" {
		t.Errorf("the files (-disk +reader):\n%s", diff)
	}
	for _, f := range files {
		got, err := r.ReadFile(f)
		want, ferr := fresh.ReadFile(f)
		if err != nil || ferr != nil || !bytes.Equal(got, want) {
			t.Errorf("%s holds %q, the reader says %q; %v, %v", f, want, got, ferr, err)
		}
	}
}

// TestReaderKnowsWhatIsWritten checks that, after random plans, the trusting Reader of a Dir agrees with the
// disk.
func TestReaderKnowsWhatIsWritten(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, osDisk{})
	r := d.Reader()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		r.Trust(i%7 > 0)
		var p Plan
		steps := []Step{{Name: "clusters"}, {Name: "endpoints"}, {Name: "trim"}}
		if random.IntN(2) == 0 {
			steps[0].Write = []File{{Path: "cds/cds.json", Data: fmt.Append(nil, random.IntN(3)), Version: "v"}}
		}
		for n := range 6 {
			name := fmt.Sprintf("eds/%d/eds.json", n)
			switch random.IntN(4) {
			case 0:
				steps[1].Write = append(steps[1].Write, File{Path: name, Data: fmt.Append(nil, random.IntN(3)), Secret: random.IntN(4) == 0})
			case 1:
				steps[2].Remove = append(steps[2].Remove, name)
			}
		}
		p.Steps, p.Manifest = steps, Manifest{Snapshot: fmt.Sprint("s", random.IntN(5)), Resources: map[string]int{"CDS": 1}}
		if _, err := d.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		agrees(t, r, out)
		if pending, err := Pending(out, p, Options{}); err != nil || len(pending.Steps) > 0 {
			t.Fatalf("after Publish this is left: %+v, %v", pending.Steps, err)
		}
	}
}

// TestTrustAsksNothing checks that a trusting Reader reads neither published files nor the files that they
// replace.
func TestTrustAsksNothing(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, osDisk{})
	f := File{Path: "cds/cds.json", Data: []byte("1")}
	if _, err := d.Publish(t.Context(), Plan{Steps: []Step{{Write: []File{f}}}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(out, f.Path)); err != nil {
		t.Fatal(err)
	}
	r := d.Reader()
	r.Trust(true)
	if data, err := r.ReadFile(f.Path); err != nil || &data[0] != &f.Data[0] {
		t.Errorf("it reads %q, %v", data, err)
	}
	other := f
	other.Data = []byte("2")
	for _, tt := range []struct {
		file File
		out  bool
	}{{f, true}, {other, false}} {
		if is, err := r.isOut(d.root, tt.file, d.gid, make(links)); err != nil || is != tt.out {
			t.Errorf("%q is out: %v, %v", tt.file.Data, is, err)
		}
	}
}

// TestTrustBeginsAnew checks that a Reader that trusts again trusts its knowledge of the files that the last
// look asked about, and of no other file, such as a retired one.
func TestTrustBeginsAnew(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, osDisk{})
	asked, retired := File{Path: "eds/a/eds.json", Data: []byte("1")}, File{Path: "eds/b/eds.json", Data: []byte("1")}
	if _, err := d.Publish(t.Context(), Plan{Steps: []Step{{Write: []File{asked, retired}}}}); err != nil {
		t.Fatal(err)
	}
	r := d.Reader()
	r.Trust(true)
	if err := os.WriteFile(filepath.Join(out, retired.Path), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	isOut := func(f File) bool {
		t.Helper()
		is, err := r.isOut(d.root, f, d.gid, make(links))
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if !isOut(asked) || !isOut(retired) {
		t.Error("it does not trust what it knows")
	}
	r.Trust(false)
	if !isOut(asked) {
		t.Error("a file that is out was not found")
	}
	r.Trust(true)
	if err := os.Remove(filepath.Join(out, asked.Path)); err != nil {
		t.Fatal(err)
	}
	if !isOut(asked) || isOut(retired) {
		t.Errorf("the file that was found is trusted: %t; the other: %t", isOut(asked), isOut(retired))
	}
}

// TestReaderSeesOthers checks that a Reader sees the changes of others at once, or, if it trusts, after
// Trust(false). The next Publish restores the files.
func TestReaderSeesOthers(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, osDisk{})
	p := Plan{Steps: []Step{{Write: []File{{Path: "cds/cds.json", Data: []byte("1"), Version: "v"}, {Path: "eds/a/eds.json", Data: []byte("2")}}}},
		Manifest: Manifest{Snapshot: "s"}}
	if _, err := d.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(out, name) }
	for name, change := range map[string]func() error{
		"another content": func() error { return os.WriteFile(at("cds/cds.json"), []byte("3"), 0o644) },
		"a removed file":  func() error { return os.Remove(at("eds/a/eds.json")) },
		"another mode":    func() error { return os.Chmod(at("cds/cds.json"), 0o600) },
		"a folder's mode": func() error { return os.Chmod(at("eds/a"), 0o700) },
		"a link to the same": func() error {
			if err := os.Rename(at("cds/cds.json"), at("other")); err != nil {
				return err
			}
			return os.Symlink("../other", at("cds/cds.json"))
		},
		"another record": func() error {
			data, err := os.ReadFile(at(manifestPath))
			if err != nil {
				return err
			}
			return os.WriteFile(at(manifestPath), bytes.Replace(data, []byte(`"s"`), []byte(`"t"`), 1), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := d.Publish(t.Context(), p); err != nil { // which reads the published files
				t.Fatal(err)
			}
			agrees(t, d.Reader(), out)
			if err := change(); err != nil {
				t.Fatal(err)
			}
			d.Reader().Trust(true)
			if result, err := d.Publish(t.Context(), p); err != nil || len(result.Steps) > 0 {
				t.Errorf("a Dir that trusts looked: %+v, %v", result, err)
			}
			for file, want := range map[string]bool{
				"cds/cds.json":   name != "another content" && name != "another mode" && name != "a link to the same",
				"eds/a/eds.json": name != "a removed file", "eds/b/eds.json": false,
			} {
				if is := d.Reader().StillOut(file); is != want {
					t.Errorf("StillOut(%s): %v", file, is)
				}
			}
			d.Reader().Trust(false)
			if _, err := d.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if left, err := Pending(out, p, Options{}); err != nil || len(left.Steps) > 0 {
				t.Errorf("not mended: %+v, %v", left.Steps, err)
			}
			agrees(t, d.Reader(), out)
		})
	}
}

// TestAsLeft checks that AsLeft notices each change of the directory by others. Without such a change AsLeft
// returns true, even after an edit by a trusting Dir.
func TestAsLeft(t *testing.T) {
	at := func(d *Dir, name string) string { return filepath.Join(d.Path(), name) }
	for name, change := range map[string]func(d *Dir) error{
		"nothing":          func(*Dir) error { return nil },
		"another content":  func(d *Dir) error { return os.WriteFile(at(d, "cds/cds.json"), []byte("3"), 0o644) },
		"a removed file":   func(d *Dir) error { return os.Remove(at(d, "eds/a/eds.json")) },
		"a removed folder": func(d *Dir) error { return os.RemoveAll(at(d, "eds")) },
		"another mode":     func(d *Dir) error { return os.Chmod(at(d, "cds/cds.json"), 0o600) },
		"a folder's mode":  func(d *Dir) error { return os.Chmod(at(d, "eds/a"), 0o700) },
		"a link to the same": func(d *Dir) error {
			if err := os.Rename(at(d, "eds/a"), at(d, "was")); err != nil {
				return err
			}
			return os.Symlink("../was", at(d, "eds/a"))
		},
		"a file more": func(d *Dir) error {
			if err := os.Mkdir(at(d, "eds/b"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(at(d, "eds/b/eds.json"), nil, 0o644)
		},
		"a file that no plan has published": func(d *Dir) error { return os.WriteFile(at(d, "eds/old/eds.json"), []byte("4"), 0o644) },
		"another record":                    func(d *Dir) error { return os.WriteFile(at(d, manifestPath), []byte("{}"), 0o600) },
		"no record":                         func(d *Dir) error { return os.Remove(at(d, manifestPath)) },
		"an intent":                         func(d *Dir) error { return os.WriteFile(at(d, intentPath), []byte("{}"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, t.TempDir(), osDisk{})
			if err := os.MkdirAll(at(d, "eds/old"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at(d, "eds/old/eds.json"), []byte("0"), 0o644); err != nil {
				t.Fatal(err)
			}
			p := Plan{Manifest: Manifest{Snapshot: "s"}}
			for data := range 3 {
				d.Reader().Trust(data > 0) // the last plans are edits
				if _, err := d.Reader().List(layoutOfTests); err != nil {
					t.Fatal(err)
				}
				p.Steps = []Step{{Write: []File{{Path: "cds/cds.json", Data: []byte("1")}, {Path: "eds/a/eds.json", Data: fmt.Append(nil, data)}}}}
				if _, err := d.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			d.Reader().Trust(false)
			d.AsLeft() // which finds files that no plan has published
			if !d.AsLeft() {
				t.Fatal("nobody did anything")
			}
			if err := change(d); err != nil {
				t.Fatal(err)
			}
			if is, want := d.AsLeft(), name == "nothing"; is != want {
				t.Errorf("AsLeft says %t", is)
			}
		})
	}
}
