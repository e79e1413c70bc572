package load

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/source/settingsfile"
	"xdspub/xds"
)

// later returns a Loader whose clock is ahead, so that all files are old. The Loader then trusts the file
// system's times.
func later() *Loader {
	l := New(Options{Ignore: []string{"ignored"}})
	l.now = func() time.Time { return time.Now().Add(time.Hour) }
	return l
}

// TestNotRead checks that Load does not read a file again that the file system reports as unchanged, even a
// file that a resource inlines.
func TestNotRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED, needs Linux: it counts what a process reads")
	}
	dir := t.TempDir()
	const size = 1 << 20
	long := "# " + strings.Repeat("x", size) + "\n"
	files := map[string]string{
		"a.yaml":      long + `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a}`,
		".b.yaml":     long + `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: b}`,
		"secret.yaml": `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: s, generic_secret: {secret: {filename: .key}}}`,
		".key":        long[:size],
	}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must(t, os.Symlink(".b.yaml", filepath.Join(dir, "b.yaml")))
	l := later()
	first := load(t, l, dir)
	before := bytesRead(t)
	again := load(t, l, dir)
	if read := bytesRead(t) - before; read > size/2 {
		t.Errorf("%d bytes were read for what is the same", read)
	}
	if again != first {
		t.Error("nothing changed, and the result is another one")
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		must(t, err)
		must(t, os.WriteFile(path, []byte(strings.Replace(text, "xx", "yy", 1)), 0o600))
		must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		if next := load(t, l, dir); next == again && name != "secret.yaml" {
			t.Errorf("%s changed, and has its size and its time of before: it was not read", name)
		} else {
			again = next
		}
	}
}

// bytesRead returns how many bytes this process has read.
func bytesRead(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/io")
	must(t, err)
	_, rest, _ := strings.Cut(string(data), "rchar: ")
	n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	must(t, err)
	return n
}

// TestYoung checks that Load reads a file again that has just changed, whatever the file system says, because
// the file may change once more within the same tick of the clock.
func TestYoung(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED, needs Linux: it counts what a process reads")
	}
	dir := t.TempDir()
	const size = 1 << 20
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("# "+strings.Repeat("x", size)), 0o600))
	l := New(Options{})
	load(t, l, dir)
	before := bytesRead(t)
	load(t, l, dir)
	if read := bytesRead(t) - before; read < size {
		t.Errorf("%d bytes were read of a file that is just made", read)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, l *Loader, root string) *Result {
	t.Helper()
	r, err := l.Load(t.Context(), root)
	must(t, err)
	return r
}

// garden is a source tree that changes at random.
type garden struct {
	t      *testing.T
	random *rand.Rand
	root   string
}

// TestChanges checks that, after any change of a tree, a Loader that has read the tree before returns the same
// as a new Loader.
func TestChanges(t *testing.T) {
	for seed := range 24 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := garden{t, rand.New(rand.NewPCG(1, uint64(seed))), filepath.Join(t.TempDir(), "root")}
			must(t, os.MkdirAll(filepath.Join(g.root, ".store"), 0o700))
			must(t, os.MkdirAll(filepath.Join(g.root, "../outside"), 0o700))
			l := later()
			again := l.Load
			var last *Result
			for range 60 {
				var did, changed []string
				for range g.random.IntN(4) {
					what, paths := g.change()
					did = append(did, what)
					changed = append(changed, g.reached(paths)...)
				}
				if seed%2 > 0 { // by Update, as a watch does
					again = func(ctx context.Context, root string) (*Result, error) { return l.Update(ctx, root, changed) }
				}
				next, err := again(t.Context(), g.root)
				g.compare(did, next, err)
				if err != nil {
					continue
				}
				if last != nil && next.Snapshot() != last.Snapshot() {
					g.compareChange(did, last.Snapshot(), next.Snapshot())
				}
				last = next
			}
		})
	}
}

// compare compares the result of a Loader with the result of a new Loader.
func (g garden) compare(did []string, got *Result, err error) {
	g.t.Helper()
	want, wantErr := later().Load(g.t.Context(), g.root)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		g.t.Fatalf("after %q: error %v, want %v", did, err, wantErr)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(inFull(want), inFull(got)); diff != "" {
		g.t.Fatalf("after %q (-cold +again):\n%s", did, diff)
	}
}

// compareChange compares the Change between two snapshots, as next has it, with the snapshots.
func (g garden) compareChange(did []string, old, next *xds.Snapshot) {
	c, known := next.Since(old)
	if !known {
		return // next does not derive from old
	}
	in := make(map[*xds.Resource]int)
	for _, r := range old.All() {
		in[r]++
	}
	for _, r := range c.Removed {
		in[r]--
	}
	for _, r := range c.Added {
		in[r]++
	}
	for _, r := range next.All() {
		in[r]--
	}
	for r, n := range in {
		if n != 0 {
			g.t.Fatalf("after %q: the change does not lead from one snapshot to the next: %d × %s", did, n, r)
		}
	}
}

// whole has all parts of a Result, for comparison.
type whole struct {
	Resources, Sorted []holding
	Diagnostics       diag.List
	Lines             []string
	Files, Inlined    []string
	Bytes             int64
	Partial           bool
	Unknown           []string
	ID                string
}

type holding struct {
	Key        string
	Content    string
	Begin, End diag.Position
	Lost       xds.Lost
	For        string
	ForAt      diag.Range
}

func inFull(r *Result) whole {
	w := whole{Diagnostics: r.Diagnostics, Files: r.Files(), Inlined: r.Inlined, Bytes: r.Bytes, Partial: r.Partial, Unknown: r.ClientsUnknownIn, ID: r.Snapshot().ID()}
	all := func(list []*xds.Resource) (out []holding) {
		for _, r := range list {
			content, _ := r.Canonical()
			out = append(out, holding{r.Key.String(), string(content), r.Origin.Range("").Position, r.Origin.Range("name").Position, r.Lost, r.For.String(), r.ConstraintsAt()})
		}
		return out
	}
	w.Resources, w.Sorted = all(r.Resources()), all(r.Snapshot().All())
	for _, d := range r.Diagnostics {
		line, _ := r.Line(d.Position)
		w.Lines = append(w.Lines, line)
	}
	return w
}

// path returns one of a few names, so that several changes concern the same path.
func (g garden) path() string {
	dirs := []string{"", "", "", "a", "b", "a/c", "ignored", ".hidden"}
	names := []string{"1.yaml", "2.yaml", "3.json", "4.txtpb", "other.conf", "README.md", ".swap", "a.yaml", "xdspub.yaml", "xdspub.yaml", "xdspub.yaml"}
	return filepath.Join(g.root, dirs[g.random.IntN(len(dirs))], names[g.random.IntN(len(names))])
}

// some returns one of the existing files or folders that want accepts; empty for none.
func (g garden) some(want func(fs.FileMode) bool) string {
	var list []string
	must(g.t, filepath.WalkDir(g.root, func(path string, e fs.DirEntry, err error) error {
		if path != g.root && !strings.HasSuffix(path, "/.store") && want(e.Type()) {
			list = append(list, path)
		}
		return err
	}))
	if len(list) == 0 {
		return ""
	}
	return list[g.random.IntN(len(list))]
}

func (g garden) text(path string) string {
	name := fmt.Sprint("name", g.random.IntN(6))
	if filepath.Base(path) == settingsfile.FileName {
		return []string{"", "when: {env: prod}", "when: {env: [prod, test]}", "# moved\nwhen: {env: prod}", "when: {region: {not: eu}}", "when: {env: 1}", "eds: inline",
			"when: [{files: 1.yaml, params: {canary: exists}}]", "when: [{files: '[0-3].*', params: {canary: absent}}, {files: a, params: {env: prod}}]"}[g.random.IntN(9)]
	}
	switch filepath.Ext(path) {
	case ".json":
		return fmt.Sprintf(`{"resources": [{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": %q}]}`, name)
	case ".txtpb":
		return fmt.Sprintf("resources { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: %q } }\n", name)
	}
	switch g.random.IntN(9) {
	case 8:
		return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}, resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s}}`, name)
	case 0, 4:
		return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, generic_secret: {secret: {filename: %s}}}`, name,
			[]string{".key", ".key", "../.key", "missing", ".store/key", "../../outside/key"}[g.random.IntN(6)])
	case 1:
		return fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: %s\ntype: STATC\n", name)
	case 2:
		return ""
	case 3:
		return "a: ["
	}
	var b strings.Builder
	for range 1 + g.random.IntN(3) {
		fmt.Fprintf(&b, "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: name%d\n", g.random.IntN(6))
	}
	return b.String()
}

// write writes a file with a new time. The clock of the file system may be coarse, and the Loaders here take
// all files for old.
func (g garden) write(path, text string) {
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return // a file is in the way
	}
	signature := func() (s safefile.Signature) {
		if info, err := os.Stat(path); err == nil {
			s = safefile.SignatureOf(info)
		}
		return s
	}
	for before := signature(); ; {
		if os.WriteFile(path, []byte(text), 0o600) != nil || signature() != before {
			return
		}
	}
}

// reached returns paths with the links that may lead to them.
func (g garden) reached(paths []string) []string {
	for _, path := range paths {
		if !strings.HasPrefix(path, filepath.Join(g.root, ".store")) {
			continue
		}
		must(g.t, filepath.WalkDir(g.root, func(link string, e fs.DirEntry, err error) error {
			if e.Type()&fs.ModeSymlink != 0 {
				paths = append(paths, link, filepath.Join(link, filepath.Base(path)))
			}
			return err
		}))
	}
	return paths
}

// change makes a random change, and returns its description and its paths.
func (g garden) change() (what string, paths []string) {
	regular := func(m fs.FileMode) bool { return m.IsRegular() }
	switch g.random.IntN(14) {
	case 0, 1, 2:
		path := g.path()
		paths := []string{path}
		for dir := filepath.Dir(path); dir != g.root; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(dir); err != nil {
				paths = append(paths, dir) // the folder is created
			}
		}
		g.write(path, g.text(path))
		return "write " + path, paths
	case 3: // a change that keeps size and time
		path := g.some(regular)
		if path == "" {
			break
		}
		info, err := os.Stat(path)
		must(g.t, err)
		data, err := os.ReadFile(path)
		must(g.t, err)
		text := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '8' {
				return r + 1
			}
			return r
		}, string(data))
		g.write(path, text)
		must(g.t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		return "alter " + path, []string{path}
	case 4:
		path := g.some(regular)
		if path == "" {
			break
		}
		at := time.Now().Add(time.Duration(g.random.IntN(100)-50) * time.Hour)
		must(g.t, os.Chtimes(path, at, at))
		return "touch " + path, nil
	case 5, 6:
		path := g.some(regular)
		if path == "" {
			break
		}
		must(g.t, os.Remove(path))
		return "remove " + path, []string{path}
	case 7:
		from, to := g.some(regular), g.path()
		if from == "" || os.Rename(from, to) != nil {
			break
		}
		return "rename " + from + " " + to, []string{from, to}
	case 8:
		from, to := g.some(fs.FileMode.IsDir), filepath.Join(g.root, []string{"a", "b", "c", ".d", "a/c"}[g.random.IntN(5)])
		if from == "" || os.Rename(from, to) != nil {
			break
		}
		return "move " + from + " " + to, []string{from, to}
	case 9:
		path := g.some(fs.FileMode.IsDir)
		if path == "" || g.random.IntN(3) > 0 {
			break
		}
		must(g.t, os.RemoveAll(path))
		return "remove folder " + path, []string{path}
	case 10, 11, 12: // the target of a link, or a file that resources inline
		path := filepath.Join(g.root, ".store", []string{"1.yaml", "2.yaml", "key", settingsfile.FileName}[g.random.IntN(4)])
		if g.random.IntN(3) > 0 {
			path = filepath.Join(g.root, []string{".key", ".key", "a/.key"}[g.random.IntN(3)])
		}
		g.write(path, g.text(path))
		return "write " + path, []string{path}
	default: // a link is added, removed or turned
		path := filepath.Join(g.root, []string{"l.yaml", "a/m.yaml", "l", "a/xdspub.yaml"}[g.random.IntN(4)])
		_ = os.Remove(path)
		to := []string{".store/1.yaml", "../.store/2.yaml", ".store", "../outside", "nowhere", "a"}[g.random.IntN(6)]
		if g.random.IntN(2) == 0 {
			_ = os.Symlink(to, path)
		}
		return "link " + path + " " + to, []string{path}
	}
	return "nothing", nil
}
