package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/event"
)

// eds returns a plan of endpoint files, one for each of the versions.
func eds(versions ...string) Plan {
	var s Step
	for i, v := range versions {
		if v != "" {
			s.Write = append(s.Write, text(fmt.Sprintf("eds/%03d/eds.json", i), v))
		}
	}
	return snapshot(strings.Join(versions, ""), s)
}

// bases returns the names of the bases of the record.
func bases(t *testing.T, out string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(out, basesPath, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func sizeOf(t *testing.T, out, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestRecordOfAnEdit checks that the record of an edit of one file does not grow with the number of files.
func TestRecordOfAnEdit(t *testing.T) {
	var sizes []int64
	for _, n := range []int{300, 900} {
		out := t.TempDir()
		d := mustOpen(t, out, &probe{root: out, quick: true})
		mustPublish(t, d, eds(slices.Repeat([]string{"a"}, n)...))
		if len(bases(t, out)) != 1 {
			t.Fatalf("bases %v", bases(t, out))
		}
		mustPublish(t, d, eds("b"))
		sizes = append(sizes, sizeOf(t, out, manifestPath))
		m, err := ReadManifest(out)
		if err != nil || len(m.Files.Names()) != n || m.Files.layout() != layout {
			t.Errorf("the record has %d files, %v", len(m.Files.Names()), err)
		}
		if f, ok := m.Files.Get("eds/000/eds.json"); !ok || f.Version != "b" {
			t.Errorf("the edited file is %v", f)
		}
		if drifted, err := m.Drifted(out); err != nil || len(drifted) > 0 {
			t.Errorf("drifted %v, %v", drifted, err)
		}
	}
	if sizes[0] != sizes[1] {
		t.Errorf("the record has %d bytes of 300 files, %d of 900", sizes[0], sizes[1])
	}
}

// TestFold checks that a new base replaces the base once many files have changed.
func TestFold(t *testing.T) {
	out := t.TempDir()
	d, err := open(out, Options{maxChanged: 2}, &probe{root: out, quick: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	mustPublish(t, d, eds("a", "a", "a"))
	first := bases(t, out)
	mustPublish(t, d, eds("b", "b"))
	if got := bases(t, out); len(got) != 1 || !slices.Equal(got, first) {
		t.Errorf("bases %v, want %v", got, first)
	}
	mustPublish(t, d, eds("a")) // as in the base, so that one change is left
	mustPublish(t, d, eds("", "", "b"))
	if got := bases(t, out); !slices.Equal(got, first) {
		t.Errorf("bases %v, want %v", got, first)
	}
	p := eds("b")
	p.Steps = append(p.Steps, Step{Remove: []string{"eds/001/eds.json"}})
	mustPublish(t, d, p)
	if got := bases(t, out); len(got) != 1 || slices.Equal(got, first) {
		t.Errorf("bases %v, want another one", got)
	}
	m, err := ReadManifest(out)
	if err != nil || !slices.Equal(m.Files.Names(), []string{"eds/000/eds.json", "eds/002/eds.json"}) {
		t.Errorf("files %v, %v", m.Files.Names(), err)
	}
}

// TestLostBase checks that a record whose base is missing or damaged has only its own files, until the next
// publish. The writer logs a warning.
func TestLostBase(t *testing.T) {
	for _, damage := range append(damages, struct {
		name string
		do   func(string) error
	}{"another base", instead(func(name string) error { return os.WriteFile(name, []byte(`{"layout": 2, "files": {}}`), 0o600) })}) {
		t.Run(damage.name, func(t *testing.T) {
			out, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			all := eds("a", "a", "a")
			var log bytes.Buffer
			again := func() *Dir {
				t.Helper()
				d, err := open(out, Options{maxChanged: 2, Log: event.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}, &probe{root: out, quick: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { d.Close() })
				return d
			}
			d := again()
			mustPublish(t, d, all)
			mustPublish(t, d, eds("b"))
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if err := damage.do(bases(t, out)[0]); err != nil {
				t.Fatal(err)
			}
			if m, err := ReadManifest(out); err != nil || !slices.Equal(m.Files.Names(), []string{"eds/000/eds.json"}) || !m.Files.Incomplete() {
				t.Errorf("files %v, incomplete: %v, %v", m.Files.Names(), m.Files.Incomplete(), err)
			}
			if log.Len() > 0 {
				t.Errorf("logged before: %s", &log)
			}
			mustPublish(t, again(), all)
			if n := strings.Count(log.String(), "the list of published files was removed or damaged"); n != 1 {
				t.Errorf("warned %d times: %s", n, &log)
			}
			if m, err := ReadManifest(out); err != nil || m.Files.Incomplete() || len(m.Files.Names()) != 3 || len(bases(t, out)) != 1 {
				t.Errorf("when all is published again: %v, incomplete: %v, %v", m.Files.Names(), m.Files.Incomplete(), err)
			}
		})
	}
}

// TestOlderRecord checks that Open reads the record of older programs, which lists all files. While there are
// few files, Publish writes a record that older programs can read.
func TestOlderRecord(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, &probe{root: out, quick: true})
	mustPublish(t, d, eds("a", "a", "a"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, manifestPath))
	var older struct {
		Layout int
		Files  map[string]Published
	}
	if jerr := json.Unmarshal(data, &older); err != nil || jerr != nil || older.Layout != 1 || len(older.Files) != 3 {
		t.Fatalf("%s, %v, %v", data, err, jerr)
	}
	if d, err = open(out, Options{maxChanged: 1}, &probe{root: out, quick: true}); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mustPublish(t, d, eds("b"))
	if m, err := ReadManifest(out); err != nil || m.Layout != layout || len(m.Files.Names()) != 3 || len(bases(t, out)) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestPublishedFiles compares PublishedFiles with a map after random changes.
func TestPublishedFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	name := func() string { return fmt.Sprintf("eds/%d\u2028\"%d/eds.json", random.IntN(9), random.IntN(3)) }
	var is PublishedFiles
	want := map[string]Published{}
	for range 3000 {
		change := map[string]*Published{}
		for range random.IntN(4) {
			if n := name(); random.IntN(3) == 0 {
				change[n] = nil
				delete(want, n)
			} else {
				f := Published{fmt.Sprint(random.IntN(3)), "<s>"}
				change[n] = &f
				want[n] = f
			}
		}
		before := is
		names := before.Names()
		is = is.with(change)
		if !slices.Equal(before.Names(), names) {
			t.Fatal("with has changed what was there before")
		}
		if random.IntN(20) == 0 {
			folded, file := is.folded()
			var read baseFile
			if err := json.Unmarshal(file.Data, &read); err != nil || len(read.Files) != len(want) || !folded.Equal(is) {
				t.Fatalf("%v: %s", err, file.Data)
			}
			is = folded
		}
		if got := is.Names(); len(got) != len(want) {
			t.Fatalf("%d files, want %d", len(got), len(want))
		}
		for n, w := range want {
			if f, ok := is.Get(n); !ok || f != w {
				t.Fatalf("%s is %v, want %v", n, f, w)
			}
		}
		data, err := json.Marshal(is)
		var back PublishedFiles
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if back.base != nil {
			back.base = is.base
		}
		if err != nil || !back.Equal(is) {
			t.Fatalf("%v: %s", err, data)
		}
	}
}

// BenchmarkRecords measures the encoding of the record of an edit.
func BenchmarkRecords(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			change := make(map[string]*Published, n)
			for i := range n {
				change[fmt.Sprintf("eds/service-%05d/eds.json", i)] = &Published{"v0123456789abcdef", "0123456789abcdef0123456789abcdef"}
			}
			files, _ := PublishedFiles{}.with(change).folded()
			prev := Manifest{Snapshot: "a", Files: files}
			p := eds("a")
			for b.Loop() {
				p.Manifest.Files = p.after(files, NewReader(""))
				if _, _, err := p.records(prev, Intent{Manifest: prev}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
