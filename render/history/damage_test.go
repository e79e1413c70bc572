package history_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/render/history"
	"xdspub/tools/memdir"
	"xdspub/xds"
)

// damages replace a file of the history by something else.
var damages = map[string]func(name string) error{
	"flipped": func(name string) error {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 4
		return os.WriteFile(name, data, 0o600)
	},
	"cut":   func(name string) error { return os.Truncate(name, 30) },
	"empty": func(name string) error { return os.Truncate(name, 0) },
	"gone":  os.Remove,
	"huge":  func(name string) error { return os.Truncate(name, 1<<40) },
	"link": func(name string) error {
		if err := os.Rename(name, name+".moved"); err != nil {
			return err
		}
		return os.Symlink(name+".moved", name)
	},
	"pipe": func(name string) error {
		if err := os.Remove(name); err != nil {
			return err
		}
		return syscall.Mkfifo(name, 0o600)
	},
	"folder": func(name string) error {
		if err := os.Remove(name); err != nil {
			return err
		}
		return os.Mkdir(name, 0o700)
	},
	"other layout": func(name string) error { return os.WriteFile(name, []byte("xdspub history 2\nfuture"), 0o600) },
	"other entry": func(name string) error { // under the name of this one
		names, err := filepath.Glob(filepath.Join(filepath.Dir(name), "0000000002-*.entry"))
		if err != nil || len(names) != 1 {
			return fmt.Errorf("%v, %v", names, err)
		}
		data, err := os.ReadFile(names[0])
		if err != nil {
			return err
		}
		return os.WriteFile(name, data, 0o600)
	},
}

// TestDamage damages the file of the first entry, which has most objects, or of the last. The other entries stay
// readable if they don't need the file, no entry is read as another one, and the next publish records a whole entry.
func TestDamage(t *testing.T) {
	for name, damage := range damages {
		for _, victim := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, victim), func(t *testing.T) {
				out := memdir.New(t)
				p := opened(t, out, history.Options{})
				trees := []*xds.Snapshot{clusters(t, "a", "b"), clusters(t, "a", "b", "c"), clusters(t, "d")}
				var items []history.Item
				for n, tree := range trees {
					items = append(items, p.record(history.Entry{Time: noon.Add(time.Duration(n) * time.Minute)}, tree))
				}
				files := slices.Sorted(maps.Keys(files(t, out)))
				p.dir.Close()
				if err := damage(filepath.Join(out, ".xdspub/history", files[victim])); err != nil {
					t.Fatal(err)
				}
				h, err := history.Read(out)
				if err != nil {
					t.Fatal(err)
				}
				defer h.Close()
				if len(h.Faults()) == 0 && name != "gone" {
					t.Error("no fault is found")
				}
				for n, i := range items {
					s, err := h.Load(i.ID, nil)
					needs := n == victim || n == 1 && victim == 0
					if (err != nil) != needs {
						t.Errorf("entry %d: %v", n, err)
					}
					if err == nil {
						sameSnapshot(t, s, trees[n])
					}
				}
				p.open(history.Options{})
				again := p.record(history.Entry{Time: noon.Add(time.Hour)}, trees[1])
				if got := strings.Count(p.log.String(), "history-damaged"); got == 0 && name != "gone" {
					t.Error("the log says nothing")
				}
				s, err := readHistory(t, out).Load(again.ID, nil)
				if err != nil {
					t.Fatal(err)
				}
				sameSnapshot(t, s, trees[1])
			})
		}
	}
}

// TestNotesAreDamaged checks that an entry with damaged notes has the outcome of its file.
func TestNotesAreDamaged(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"outcome":1}`, strings.Repeat(" ", 2<<20)} {
		out := memdir.New(t)
		p := opened(t, out, history.Options{})
		i := p.record(history.Entry{Time: noon, Outcome: history.Unconfirmed}, clusters(t, "a"))
		if err := p.Note(i.ID, history.RolledBack, ""); err != nil {
			t.Fatal(err)
		}
		if got := readHistory(t, out).Items()[0].Outcome(); got != history.RolledBack {
			t.Error(got)
		}
		notes, err := filepath.Glob(filepath.Join(out, ".xdspub/history/*.notes"))
		if err != nil || len(notes) != 1 {
			t.Fatal(notes, err)
		}
		if err := os.WriteFile(notes[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readHistory(t, out).Items()[0].Outcome(); got != history.Unconfirmed {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// TestForeign checks that a file of somebody else stays, and is reported.
func TestForeign(t *testing.T) {
	out := memdir.New(t)
	p := opened(t, out, history.Options{})
	p.record(history.Entry{Time: noon}, clusters(t, "a"))
	name := filepath.Join(out, ".xdspub/history/notes.txt")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.record(history.Entry{Time: noon}, clusters(t, "b"))
	if data, err := os.ReadFile(name); err != nil || string(data) != "mine" || !strings.Contains(p.log.String(), "notes.txt") {
		t.Errorf("%q, %v, log %s", data, err, &p.log)
	}
}

// TestHistories records random edits of a tree, with restarts and damage, into histories with small limits. Each entry
// that is listed without a fault is what was recorded, the limits hold, and the latest entry is never damaged.
func TestHistories(t *testing.T) {
	rounds := 16
	if testing.Short() {
		rounds = 3
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		out := memdir.New(t)
		o := history.Options{Keep: 1 + random.IntN(8), Size: 1 << 20}
		if seed%4 == 3 {
			o.Size = 40 << 10
		}
		p := opened(t, out, o)
		stats := make(map[int]int)
		want := make(map[string]*xds.Snapshot)
		damaged := false
		for n := range 100 {
			for range 1 + random.IntN(3) {
				stats[random.IntN(200)] = random.IntN(3)
			}
			if random.IntN(20) == 0 {
				stats = make(map[int]int)
			}
			var list []string
			for _, c := range slices.Sorted(maps.Keys(stats)) {
				list = append(list, fmt.Sprintf("c%d=%d", c, stats[c]))
			}
			if random.IntN(10) == 0 {
				p.restart(o)
			}
			if n > 0 && seed%2 == 1 && random.IntN(15) == 0 {
				damaged = true
				damageOne(t, out, random)
				if random.IntN(2) == 0 {
					p.restart(o)
				}
			}
			tree := clusters(t, list...)
			i := p.record(history.Entry{Time: noon.Add(time.Duration(n) * time.Minute)}, tree)
			want[i.ID] = tree
			checkHistory(t, out, o, i, want, damaged)
			if t.Failed() {
				t.Fatalf("seed %d, publish %d", seed, n)
			}
		}
	}
}

// damageOne flips a bit of a file of the history.
func damageOne(t *testing.T, out string, random *rand.Rand) {
	t.Helper()
	names := slices.Sorted(maps.Keys(files(t, out)))
	if err := damages["flipped"](filepath.Join(out, ".xdspub/history", names[random.IntN(len(names))])); err != nil {
		t.Fatal(err)
	}
}

func checkHistory(t *testing.T, out string, o history.Options, last history.Item, want map[string]*xds.Snapshot, damaged bool) {
	t.Helper()
	h, err := history.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if !damaged && len(h.Faults()) > 0 {
		t.Fatal(h.Faults())
	}
	whole, size := 0, int64(0)
	for _, i := range h.Items() {
		s, err := h.Load(i.ID, nil)
		if (err == nil) != (i.Fault == nil) {
			t.Errorf("entry %s: fault %v, and Load says %v", i.ID, i.Fault, err)
		}
		if err != nil && i.ID == last.ID {
			t.Errorf("the latest entry: %v", err)
		}
		if err == nil {
			sameSnapshot(t, s, want[i.ID])
			whole++
		}
	}
	for _, n := range files(t, out) {
		size += n
	}
	if whole > o.Keep {
		t.Errorf("%d entries, the limit is %d", whole, o.Keep)
	}
	if !damaged && size > o.Size {
		t.Errorf("%d bytes, the limit is %d", size, o.Size)
	}
}

// TestSizeIsTooSmall checks that an entry that is larger than the limit is an error with the remedy, and that the
// history stays as it is.
func TestSizeIsTooSmall(t *testing.T) {
	out := memdir.New(t)
	p := opened(t, out, history.Options{Size: 20 << 10})
	i := p.record(history.Entry{Time: noon}, clusters(t, "a"))
	_, err := p.Record(history.Entry{Time: noon}, many(t, 2_000))
	if err == nil || !strings.Contains(err.Error(), "raise --history-size, or turn the history off") {
		t.Error(err)
	}
	if items := readHistory(t, out).Items(); len(items) != 1 || items[0].ID != i.ID {
		t.Error(items)
	}
}

// TestTextsAreBounded checks that texts from outside, such as the subject of a commit, do not fill an entry.
func TestTextsAreBounded(t *testing.T) {
	out := memdir.New(t)
	long := strings.Repeat("x", 1<<20) + "\xff"
	tree := clusters(t, strings.Repeat("n", 1<<16))
	p := opened(t, out, history.Options{})
	p.record(history.Entry{Time: noon}, clusters(t, "a"))
	p.record(history.Entry{Time: noon, Author: long, Subject: long, By: long, Reason: long, Revision: long, EnvoyPath: long}, tree)
	data, err := os.ReadFile(filepath.Join(out, ".xdspub/history", slices.Max(slices.Collect(maps.Keys(files(t, out))))))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte("x")); n > 10<<10 {
		t.Errorf("%d characters", n)
	}
	if faults := readHistory(t, out).Faults(); len(faults) > 0 {
		t.Error(faults)
	}
}

// TestNobodyElseReads checks the modes of the folder and of the files, which may hold secrets.
func TestNobodyElseReads(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	out := memdir.New(t)
	p := opened(t, out, history.Options{})
	i := p.record(history.Entry{Time: noon}, clusters(t, "a"))
	if err := p.Note(i.ID, history.RolledBack, ""); err != nil {
		t.Fatal(err)
	}
	files(t, out)
	info, err := os.Stat(filepath.Join(out, ".xdspub/history"))
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Error(info.Mode(), err)
	}
	if err := p.Note("000000000000", history.RolledBack, ""); err == nil {
		t.Error("an unknown entry gets a note")
	}
}
