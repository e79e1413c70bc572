package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// held keeps objects in memory.
type held map[hash][]byte

func (h held) find(of hash) ([]byte, error) {
	if object, ok := h[of]; ok {
		return object, nil
	}
	return nil, fmt.Errorf("no object %x", of[:4])
}

// add adds the nodes of a tree.
func (h held) add(t *testing.T, n *node) {
	t.Helper()
	if err := n.each(h.find, 0, func(n *node, _ []row) error { h[n.hash] = n.object; return nil }); err != nil {
		t.Fatal(err)
	}
}

// named returns a row with resources named by their contents.
func named(name string, contents ...string) row {
	r := row{at: addressOf("CDS", name), api: "CDS", name: name}
	for _, c := range contents {
		r.variants = append(r.variants, hashOf([]byte(c)))
	}
	return r
}

// TestTree edits trees at random, and checks that a tree has all rows, that equal rows give equal trees, and that
// differences finds the edits, also in trees that are read from objects.
func TestTree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		var root *node
		rows, objects := make(map[string]row), make(held)
		many := 1 + random.IntN(3*maxLeaf)
		for range 40 {
			edits := make(map[string]row)
			for range random.IntN(many) {
				r := named(fmt.Sprint("c", random.IntN(3*many)))
				for range random.IntN(3) {
					r.variants = append(r.variants, hashOf([]byte{byte(random.IntN(4))}))
				}
				edits[r.name] = r
			}
			changes := slices.SortedFunc(maps.Values(edits), compareRows)
			before := maps.Clone(rows)
			for _, r := range changes {
				if rows[r.name] = r; len(r.variants) == 0 {
					delete(rows, r.name)
				}
			}
			was := root
			if random.IntN(2) == 0 && root != nil {
				var err error
				if root, err = rootOf(root.hash, objects.find); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if root, err = root.with(changes, 0, objects.find); err != nil {
				t.Fatal(err)
			}
			objects.add(t, root)
			checkTree(t, root, rows, objects)
			checkDifferences(t, was, root, before, rows, objects)
			if t.Failed() {
				return
			}
		}
	}
}

func checkTree(t *testing.T, root *node, want map[string]row, objects held) {
	t.Helper()
	sorted := slices.SortedFunc(maps.Values(want), compareRows)
	var got []row
	if err := root.each(objects.find, 0, collect(&got)); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, sorted, func(a, b row) bool { return a.name == b.name && slices.Equal(a.variants, b.variants) }) {
		t.Errorf("%d rows, want %d", len(got), len(sorted))
	}
	anew := build(sorted, 0)
	if (anew == nil) != (root == nil) || anew != nil && (anew.hash != root.hash || root.keys != len(want)) {
		t.Error("the tree differs from a tree that was built at once")
	}
}

func checkDifferences(t *testing.T, was, is *node, before, after map[string]row, objects held) {
	t.Helper()
	want := make(map[string]string)
	for name, r := range after {
		if old, ok := before[name]; !ok {
			want[name] = "added"
		} else if !slices.Equal(old.variants, r.variants) {
			want[name] = "changed"
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			want[name] = "removed"
		}
	}
	got := make(map[string]string)
	err := differences(was, is, 0, objects.find, func(was, is *row) {
		switch {
		case was == nil:
			got[is.name] = "added"
		case is == nil:
			got[was.name] = "removed"
		default:
			got[is.name] = "changed"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// TestTreeSharesNodes checks that an edit of one of 10,000 keys makes a few kilobytes of new nodes.
func TestTreeSharesNodes(t *testing.T) {
	var rows []row
	for i := range 10_000 {
		rows = append(rows, named(fmt.Sprintf("cluster-%05d", i), fmt.Sprint(i)))
	}
	slices.SortFunc(rows, compareRows)
	root, objects := build(rows, 0), make(held)
	objects.add(t, root)
	next, err := root.with([]row{named("cluster-00042", "new")}, 0, objects.find)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	known := func(n *node) bool { return objects[n.hash] == nil }
	if err := next.eachOf(objects.find, 0, known, func(n *node, _ []row) error { size += len(n.object); return nil }); err != nil {
		t.Fatal(err)
	}
	if size > 8<<10 {
		t.Errorf("an edit makes %d bytes of nodes", size)
	}
}

// TestTreeOfOneAddress checks that a leaf holds the keys of one address, which no branch can split.
func TestTreeOfOneAddress(t *testing.T) {
	var rows []row
	for i := range 2 * maxLeaf {
		r := named(fmt.Sprint(i), "x")
		r.at = address{}
		rows = append(rows, r)
	}
	root := build(rows, 0)
	depth := 0
	for n := root; n.children != nil; n = n.children[0] {
		depth++
	}
	if depth != maxDepth {
		t.Errorf("a leaf at depth %d", depth)
	}
}

// TestHostileTree reads trees that no Store writes. All are errors, and none takes long or much memory.
func TestHostileTree(t *testing.T) {
	objects := make(held)
	put := func(object []byte) hash {
		h := hashOf(object)
		objects[h] = object
		return h
	}
	same := leaf([]row{named("a", "x")})
	objects[same.hash] = same.object
	// Each branch has the same child sixteen times: a tree of 16^16 leaves in 17 objects.
	bomb, keys := same.hash, uint64(1)
	for range maxDepth {
		object := []byte{kindBranch}
		for range fanOut {
			object = append(binary.AppendUvarint(object, keys), bomb[:]...)
		}
		bomb, keys = put(object), min(keys*fanOut, maxKeys)
	}
	loop := bytes.Repeat([]byte{0}, fanOut)
	for name, root := range map[string]hash{
		"bomb":          bomb,
		"empty object":  put(nil),
		"other kind":    put([]byte{'x', 1}),
		"cut leaf":      put(same.object[:len(same.object)-1]),
		"long leaf":     put(append(bytes.Clone(same.object), 0)),
		"leaf, no rows": put([]byte{kindLeaf, 0}),
		"huge count":    put([]byte{kindLeaf, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}),
		"no children":   put(append([]byte{kindBranch}, loop...)),
		"unknown child": put(append(append([]byte{kindBranch, 1}, make([]byte, 32)...), loop[1:]...)),
		"wrong keys":    put(append(append([]byte{kindBranch, 2}, same.hash[:]...), loop[1:]...)),
		"unsorted":      put(leaf([]row{named("b", "x"), named("b", "y")}).object),
		"no variants":   put(leaf([]row{named("b")}).object),
		"missing":       {1},
	} {
		n, err := rootOf(root, objects.find)
		if err == nil {
			err = n.each(objects.find, 0, func(*node, []row) error { return nil })
		}
		if err == nil {
			t.Errorf("%s: read", name)
		} else if !errors.Is(err, errNode) && name != "missing" && name != "unknown child" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
