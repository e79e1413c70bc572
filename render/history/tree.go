package history

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

const (
	// maxLeaf is the number of keys that a leaf holds. A leaf at maxDepth holds any number.
	maxLeaf = 128
	// fanOut is the number of children of a branch, one for each value of four bits of a key's hash.
	fanOut   = 16
	maxDepth = 2 * len(address{})
)

// address is the beginning of the hash of a key. Its bits lead from the root of a tree to the leaf of the key.
type address [8]byte

func addressOf(api, name string) (a address) {
	sum := sha256.Sum256([]byte(api + "\x00" + name))
	copy(a[:], sum[:])
	return a
}

// at returns the four bits that choose the child of a branch at a depth.
func (a address) at(depth int) int {
	if depth%2 == 0 {
		return int(a[depth/2] >> 4)
	}
	return int(a[depth/2] & 15)
}

// row has the resources of a key: one, or all variants in the order of the source. A row without resources removes
// the key from a tree.
type row struct {
	at        address
	api, name string
	variants  []hash
}

func compareRows(a, b row) int {
	return cmp.Or(bytes.Compare(a.at[:], b.at[:]), strings.Compare(a.api, b.api), strings.Compare(a.name, b.name))
}

// node is a node of a tree. Equal sets of rows have equal trees, whatever edits led to them. A node does not change,
// except that load completes the node.
type node struct {
	hash hash
	keys int
	// object is the encoded node; nil if the node is not loaded.
	object []byte
	// children are the nodes below a branch, nil where no key leads; nil for a leaf.
	children []*node
}

var errNode = errors.New("a node of the tree is invalid")

// rows returns the rows of a leaf.
func (n *node) rows() ([]row, error) {
	d := decoder{rest: n.object}
	if d.byte() != kindLeaf {
		return nil, errNode
	}
	var rows []row
	for range d.count(3) {
		r := row{api: d.text(), name: d.text()}
		r.at = addressOf(r.api, r.name)
		for range d.count(len(hash{})) {
			r.variants = append(r.variants, d.hash())
		}
		if rows = append(rows, r); len(r.variants) == 0 || len(rows) > 1 && compareRows(rows[len(rows)-2], r) >= 0 {
			return nil, errNode
		}
	}
	if d.failed || len(d.rest) > 0 || len(rows) != n.keys {
		return nil, errNode
	}
	return rows, nil
}

// leaf returns a leaf of sorted rows.
func leaf(rows []row) *node {
	object := binary.AppendUvarint([]byte{kindLeaf}, uint64(len(rows)))
	for _, r := range rows {
		object = appendText(appendText(object, r.api), r.name)
		object = binary.AppendUvarint(object, uint64(len(r.variants)))
		for _, v := range r.variants {
			object = append(object, v[:]...)
		}
	}
	return &node{hash: hashOf(object), keys: len(rows), object: object}
}

// branch returns a branch of children.
func branch(children []*node) *node {
	keys, object := 0, []byte{kindBranch}
	for _, c := range children {
		if c == nil {
			object = binary.AppendUvarint(object, 0)
			continue
		}
		keys += c.keys
		object = append(binary.AppendUvarint(object, uint64(c.keys)), c.hash[:]...)
	}
	return &node{hash: hashOf(object), keys: keys, object: object, children: children}
}

// objects returns the object with a hash. The function has checked the hash of the object.
type objects func(hash) ([]byte, error)

// load reads a node that is not loaded.
func (n *node) load(find objects) error {
	if n.object != nil {
		return nil
	}
	object, err := find(n.hash)
	if err != nil {
		return err
	}
	d := decoder{rest: object}
	if d.byte() == kindBranch {
		children, keys := make([]*node, fanOut), 0
		for i := range children {
			if below := d.count(0); below > 0 {
				children[i] = &node{hash: d.hash(), keys: below}
				keys += below
			}
		}
		if d.failed || len(d.rest) > 0 || keys != n.keys {
			return errNode
		}
		n.children = children
	}
	n.object = object
	return nil
}

// with returns the tree of n, which may be nil, with changed rows, which are sorted. with returns nil for a tree
// without rows.
func (n *node) with(changes []row, depth int, find objects) (*node, error) {
	switch {
	case len(changes) == 0:
		return n, nil
	case n == nil:
		return build(kept(changes), depth), nil
	}
	if err := n.load(find); err != nil {
		return nil, err
	}
	if n.children == nil {
		rows, err := n.rows()
		if err != nil {
			return nil, err
		}
		return build(merged(rows, changes), depth), nil
	}
	if depth == maxDepth {
		return nil, errNode
	}
	children, keys := make([]*node, fanOut), 0
	for i, part := range split(changes, depth) {
		var err error
		if children[i], err = n.children[i].with(part, depth+1, find); err != nil {
			return nil, err
		}
		if children[i] != nil {
			keys += children[i].keys
		}
	}
	if keys > maxLeaf {
		return branch(children), nil
	}
	var rows []row
	for _, c := range children {
		if err := c.each(find, depth+1, collect(&rows)); err != nil {
			return nil, err
		}
	}
	return build(rows, depth), nil
}

// build returns the tree of sorted rows, which begins at a depth; nil for no rows.
func build(rows []row, depth int) *node {
	switch {
	case len(rows) == 0:
		return nil
	case len(rows) <= maxLeaf || depth == maxDepth:
		return leaf(rows)
	}
	children := make([]*node, fanOut)
	for i, part := range split(rows, depth) {
		children[i] = build(part, depth+1)
	}
	return branch(children)
}

// split returns the parts of sorted rows that belong to the children of a branch at a depth.
func split(rows []row, depth int) (parts [fanOut][]row) {
	for len(rows) > 0 {
		i, n := rows[0].at.at(depth), 1
		for n < len(rows) && rows[n].at.at(depth) == i {
			n++
		}
		parts[i], rows = rows[:n], rows[n:]
	}
	return parts
}

// kept returns the rows that have resources.
func kept(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return len(r.variants) == 0 })
}

// merged returns sorted rows after sorted changes.
func merged(rows, changes []row) (after []row) {
	for len(rows) > 0 && len(changes) > 0 {
		switch order := compareRows(rows[0], changes[0]); {
		case order < 0:
			after, rows = append(after, rows[0]), rows[1:]
		case order == 0:
			rows = rows[1:]
		default:
			after, changes = append(after, changes[0]), changes[1:]
		}
	}
	return kept(append(append(after, rows...), changes...))
}

// collect returns a function for each that appends the rows of leaves to a list.
func collect(rows *[]row) func(*node, []row) error {
	return func(_ *node, of []row) error {
		*rows = append(*rows, of...)
		return nil
	}
}

// each calls visit for n, which may be nil, and for all nodes below, in the order of keys. rows are the rows of a leaf,
// nil for a branch. An error of visit ends each.
func (n *node) each(find objects, depth int, visit func(n *node, rows []row) error) error {
	return n.eachOf(find, depth, func(*node) bool { return true }, visit)
}

// eachOf is each without the nodes for which enter returns false, and without the nodes below them.
func (n *node) eachOf(find objects, depth int, enter func(*node) bool, visit func(n *node, rows []row) error) error {
	if n == nil || !enter(n) {
		return nil
	}
	if err := n.load(find); err != nil {
		return err
	}
	if n.children == nil {
		rows, err := n.rows()
		if err != nil {
			return err
		}
		return visit(n, rows)
	}
	if depth == maxDepth {
		return errNode
	}
	if err := visit(n, nil); err != nil {
		return err
	}
	for _, c := range n.children {
		if err := c.eachOf(find, depth+1, enter, visit); err != nil {
			return err
		}
	}
	return nil
}

// differences calls visit for each key whose rows differ between two trees, in the order of keys. A row is nil if
// its tree lacks the key. differences reads only the nodes that differ.
func differences(was, is *node, depth int, find objects, visit func(was, is *row)) error {
	if was != nil && is != nil && was.hash == is.hash {
		return nil
	}
	for _, n := range []*node{was, is} {
		if n != nil {
			if err := n.load(find); err != nil {
				return err
			}
		}
	}
	if was != nil && is != nil && was.children != nil && is.children != nil && depth < maxDepth {
		for i := range fanOut {
			if err := differences(was.children[i], is.children[i], depth+1, find, visit); err != nil {
				return err
			}
		}
		return nil
	}
	var sides [2][]row
	for i, n := range []*node{was, is} {
		if err := n.each(find, depth, collect(&sides[i])); err != nil {
			return err
		}
	}
	compare(sides[0], sides[1], visit)
	return nil
}

// compare calls visit for the differences of sorted rows.
func compare(was, is []row, visit func(was, is *row)) {
	for len(was) > 0 || len(is) > 0 {
		order := 0
		switch {
		case len(was) == 0:
			order = 1
		case len(is) == 0:
			order = -1
		default:
			order = compareRows(was[0], is[0])
		}
		switch {
		case order < 0:
			visit(&was[0], nil)
			was = was[1:]
		case order > 0:
			visit(nil, &is[0])
			is = is[1:]
		default:
			if !slices.Equal(was[0].variants, is[0].variants) {
				visit(&was[0], &is[0])
			}
			was, is = was[1:], is[1:]
		}
	}
}

// rowOf returns the row of a key, without its resources.
func rowOf(k xds.Key) row {
	return row{at: addressOf(k.Type.API, k.Name), api: k.Type.API, name: k.Name}
}

// appendText appends a text with its length.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decoder reads the fields of an object. After the first fault, failed is true and all further fields are zero.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) take(n int) []byte {
	if d.failed = d.failed || n < 0 || n > len(d.rest); d.failed {
		return make([]byte, min(max(n, 0), len(hash{})))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte { return d.take(1)[0] }

// count reads the number of following elements of at least size bytes.
func (d *decoder) count(size int) int {
	n, width := binary.Uvarint(d.rest)
	if d.failed = d.failed || width <= 0 || n > maxKeys || size > 0 && n > uint64(len(d.rest)/size); d.failed {
		return 0
	}
	d.rest = d.rest[width:]
	return int(n)
}

func (d *decoder) text() string { return string(d.take(d.count(1))) }

func (d *decoder) hash() (h hash) {
	copy(h[:], d.take(len(h)))
	return h
}

// rootOf returns the root of a tree; nil for the hash of an empty tree.
func rootOf(h hash, find objects) (*node, error) {
	if h == (hash{}) {
		return nil, nil
	}
	object, err := find(h)
	if err != nil {
		return nil, err
	}
	n := &node{hash: h}
	d := decoder{rest: object}
	switch d.byte() {
	case kindLeaf:
		n.keys = d.count(3)
	case kindBranch:
		for range fanOut {
			if below := d.count(0); below > 0 {
				n.keys += below
				d.hash()
			}
		}
	}
	if d.failed || n.keys == 0 || n.keys > maxKeys {
		return nil, errNode
	}
	return n, n.load(find)
}

// changesBetween describes the differences between two trees.
func changesBetween(was, is *node, find objects) (*Changes, error) {
	var added, changed, removed []row
	err := differences(was, is, 0, find, func(was, is *row) {
		switch {
		case was == nil:
			added = append(added, *is)
		case is == nil:
			removed = append(removed, *was)
		default:
			changed = append(changed, *is)
		}
	})
	return &Changes{
		Added: len(added), Changed: len(changed), Removed: len(removed),
		NamesAdded: firstOf(added), NamesChanged: firstOf(changed), NamesRemoved: firstOf(removed),
	}, err
}

// firstOf returns the texts of the first rows, in the order of types, then by name.
func firstOf(rows []row) (names []string) {
	slices.SortFunc(rows, compareKeys)
	for _, r := range rows[:min(len(rows), MaxNames)] {
		names = append(names, diag.Cut(r.api+"/"+r.name, maxName))
	}
	return names
}

// compareKeys compares rows by type, in the order of xds.Types, then by name.
func compareKeys(a, b row) int {
	order := func(r row) int { return slices.IndexFunc(xds.Types, func(t *xds.Type) bool { return t.API == r.api }) }
	return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.name, b.name))
}
