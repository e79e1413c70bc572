package watch

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"xdspub/source/load"
)

// filled is a slot with its content.
type filled struct {
	slot
	content int
}

// sourceTree is a randomly edited source tree.
type sourceTree struct {
	t      *testing.T
	random *rand.Rand
	src    string
	// files are the intended contents of files, by path in the tree. A path that begins with FOLDER is in the
	// folder with the random name.
	files  map[string][]filled
	folder string
	saves  int      // so far
	dirty  []string // changed paths since the last take
}

var fileNames = []string{"a.yaml", "b.yml", "c.json", "d.pb", "e.pb_text", "f.txtpb", "FOLDER/a.yaml", "FOLDER/x/b.json", "FOLDER/x/c.yaml", ".g.yaml", "h.yaml", "i.yaml"}

func newSourceTree(t *testing.T, random *rand.Rand, src string) *sourceTree {
	tree := &sourceTree{t: t, random: random, src: src, files: make(map[string][]filled), folder: "folder"}
	tree.must(os.MkdirAll(filepath.Join(src, tree.folder, "x"), 0o755))
	tree.leaveData()
	for range random.IntN(12) {
		tree.put()
	}
	return tree
}

func (tree *sourceTree) must(err error) {
	tree.t.Helper()
	if err != nil {
		tree.t.Fatal(err)
	}
}

func one[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

func (tree *sourceTree) path(name string) string {
	return filepath.Join(tree.src, strings.Replace(name, "FOLDER", tree.folder, 1))
}

// edit makes one edit.
func (tree *sourceTree) edit() {
	switch n := tree.random.IntN(30); {
	case n < 7:
		tree.put()
	case n < 14:
		tree.vary(one(tree.random, fileNames))
	case n < 16: // another file may have the resource too
		tree.add(one(tree.random, slots), tree.random.IntN(contents), one(tree.random, fileNames), false)
	case n < 19:
		tree.drop(one(tree.random, slots))
	case n < 20: // other resources may need it
		tree.leave(one(tree.random, slots))
	case n < 22:
		tree.rename(one(tree.random, fileNames), one(tree.random, fileNames))
	case n < 23 && tree.random.IntN(2) == 0:
		tree.damage(one(tree.random, fileNames))
	case n < 26:
		tree.heal()
	case n < 27:
		to := map[string]string{"folder": "renamed", "renamed": ".hidden", ".hidden": "folder"}[tree.folder]
		tree.must(os.Rename(filepath.Join(tree.src, tree.folder), filepath.Join(tree.src, to)))
		tree.changed(filepath.Join(tree.src, tree.folder), filepath.Join(tree.src, to))
		tree.folder = to
	case n < 28:
		tree.leaveData()
	case n < 29: // an editor writes the same text again
		tree.save(one(tree.random, fileNames))
	default: // the resources move within the file, without a change of content
		name := one(tree.random, fileNames)
		if list := tree.files[name]; len(list) > 1 {
			tree.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			tree.save(name)
		}
	}
}

// vary changes the content of a resource of a file, mostly a little.
func (tree *sourceTree) vary(name string) {
	if list := tree.files[name]; len(list) > 0 {
		f := &list[tree.random.IntN(len(list))]
		f.content = (f.content + one(tree.random, []int{1, 3, 6, 7, 15, 18, 30})) % contents
		tree.need(f.slot, f.content, name)
		tree.save(name)
	}
}

// leaveData writes the file that resources inline, relative to each folder of the tree.
func (tree *sourceTree) leaveData() {
	text := one(tree.random, []string{"x", "y"})
	for _, dir := range []string{"", "FOLDER", "FOLDER/x"} {
		tree.write(filepath.Join(dir, "ca.txt"), []byte(text))
	}
}

// put changes the content and the place of a slot, and adds the slots that it needs and no file has.
func (tree *sourceTree) put() {
	s, name := one(tree.random, slots), one(tree.random, fileNames)
	if was := tree.where(s); was != "" && tree.random.IntN(4) > 0 {
		name = was
	}
	tree.leave(s)
	tree.add(s, tree.random.IntN(contents), name, true)
}

func (tree *sourceTree) add(s slot, content int, name string, needs bool) {
	tree.files[name] = append(tree.files[name], filled{s, content})
	if needs {
		tree.need(s, content, name)
	}
	tree.save(name)
}

// need adds the slots that a slot needs and no file has. A slot in a hidden file needs nothing.
func (tree *sourceTree) need(s slot, content int, name string) {
	if tree.where(s) == "" {
		return
	}
	_, needs := s.text(content)
	for _, n := range needs {
		if tree.where(n) == "" {
			tree.add(n, tree.random.IntN(contents), name, true)
		}
	}
}

// where returns a file with the slot that is not hidden, or "".
func (tree *sourceTree) where(s slot) string {
	for _, name := range slices.Sorted(maps.Keys(tree.files)) {
		if name[0] == '.' || tree.folder[0] == '.' && strings.HasPrefix(name, "FOLDER") {
			continue // hidden
		}
		if slices.ContainsFunc(tree.files[name], func(f filled) bool { return f.slot == s }) {
			return name
		}
	}
	return ""
}

// drop removes a slot from every file, and all slots that need it.
func (tree *sourceTree) drop(s slot) {
	if tree.where(s) == "" {
		return
	}
	tree.leave(s)
	for _, name := range slices.Sorted(maps.Keys(tree.files)) {
		for _, f := range slices.Clone(tree.files[name]) {
			if _, needs := f.text(f.content); slices.Contains(needs, s) {
				tree.drop(f.slot)
			}
		}
	}
}

// leave removes a slot from every file.
func (tree *sourceTree) leave(s slot) {
	for _, name := range slices.Sorted(maps.Keys(tree.files)) {
		list := tree.files[name]
		if left := slices.DeleteFunc(slices.Clone(list), func(f filled) bool { return f.slot == s }); len(left) < len(list) {
			tree.files[name] = left
			tree.save(name)
		}
	}
}

func (tree *sourceTree) rename(from, to string) {
	if _, ok := tree.files[from]; !ok || from == to {
		return
	}
	if _, err := os.Stat(tree.path(from)); err != nil {
		return
	}
	if filepath.Ext(from) != filepath.Ext(to) { // the other suffix needs another text
		tree.files[to] = tree.files[from]
		delete(tree.files, from)
		tree.save(from)
		tree.save(to)
		return
	}
	tree.must(os.Rename(tree.path(from), tree.path(to)))
	tree.changed(tree.path(from), tree.path(to))
	tree.files[to] = tree.files[from]
	delete(tree.files, from)
}

// damage cuts a file.
func (tree *sourceTree) damage(name string) {
	if text, err := os.ReadFile(tree.path(name)); err == nil && len(text) > 0 {
		tree.write(name, text[:tree.random.IntN(len(text))])
	}
}

// heal writes the intended content of every file. heal removes resources that collide with an earlier resource,
// and adds resources that others need.
func (tree *sourceTree) heal() {
	for _, name := range slices.Sorted(maps.Keys(tree.files)) {
		had := make(map[slot]bool)
		again := func(f filled) bool {
			defer func() { had[f.slot] = true }()
			return had[f.slot] || !slices.Contains([]string{"", name}, tree.where(f.slot))
		}
		left := slices.DeleteFunc(slices.Clone(tree.files[name]), again)
		if len(left) < len(tree.files[name]) {
			tree.files[name] = left
			tree.save(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.files)) {
		for _, f := range slices.Clone(tree.files[name]) {
			tree.need(f.slot, f.content, name)
		}
		if data, err := os.ReadFile(tree.path(name)); err != nil || !bytes.Equal(data, tree.meant(name)) {
			tree.save(name)
		}
	}
}

// save writes the intended content of a file, or removes a file that is meant to be empty.
func (tree *sourceTree) save(name string) {
	if len(tree.files[name]) > 0 {
		tree.write(name, tree.meant(name))
		return
	}
	delete(tree.files, name)
	if err := os.Remove(tree.path(name)); !errors.Is(err, fs.ErrNotExist) {
		tree.must(err)
		tree.changed(tree.path(name))
	}
}

// meant returns what a file is meant to hold.
func (tree *sourceTree) meant(name string) []byte {
	var texts []string
	for _, f := range tree.files[name] {
		text, _ := f.text(f.content)
		texts = append(texts, text)
	}
	yaml := []byte(strings.Join(texts, "\n---\n"))
	if format := map[string]string{".json": "json", ".pb": "pb", ".pb_text": "pb_text", ".txtpb": "pb_text"}[filepath.Ext(name)]; format != "" {
		return tree.converted(yaml, format)
	}
	return yaml
}

func (tree *sourceTree) converted(yaml []byte, format string) []byte {
	tree.t.Helper()
	response, result := load.Response(load.Input{Name: "stock", Format: "yaml", Data: yaml})
	if response == nil {
		tree.t.Fatal(result.Diagnostics)
	}
	encode := map[string]func(*discoveryv3.DiscoveryResponse) ([]byte, error){
		"json":    func(m *discoveryv3.DiscoveryResponse) ([]byte, error) { return protojson.Marshal(m) },
		"pb":      func(m *discoveryv3.DiscoveryResponse) ([]byte, error) { return proto.Marshal(m) },
		"pb_text": func(m *discoveryv3.DiscoveryResponse) ([]byte, error) { return prototext.Marshal(m) },
	}
	data, err := encode[format](response)
	tree.must(err)
	return data
}

// write writes a file in place, or renames another over it.
func (tree *sourceTree) write(name string, data []byte) {
	path := tree.path(name)
	over := path
	if tree.random.IntN(2) == 0 {
		over = filepath.Join(filepath.Dir(tree.src), "new")
	}
	tree.must(os.WriteFile(over, data, 0o644))
	// The files have times by the clock of the history, and each save has another time.
	tree.saves++
	at := time.Now().Add(time.Duration(tree.saves))
	tree.must(os.Chtimes(over, at, at))
	if over != path {
		tree.must(os.Rename(over, path))
	}
	tree.changed(path)
}

func (tree *sourceTree) changed(paths ...string) { tree.dirty = append(tree.dirty, paths...) }

// take returns the paths that changed since the last call.
func (tree *sourceTree) take() []string {
	slices.Sort(tree.dirty)
	paths := slices.Compact(tree.dirty)
	tree.dirty = nil
	return paths
}
