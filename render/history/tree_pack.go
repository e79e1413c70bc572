package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Tree has the resources of a Snapshot as the history stores them: as objects. A Tree does not change.
type Tree struct {
	snapshot *xds.Snapshot
	root     *node
}

// NewTree returns the Tree of a Snapshot. The result shares unchanged parts with was, which may be nil.
func NewTree(s *xds.Snapshot, was *Tree) (*Tree, error) {
	before, root := was.parts()
	var rows []row
	for key, resources := range changedKeys(before, s) {
		r := rowOf(key)
		for _, res := range resources {
			object, err := encode(res)
			if err != nil {
				return nil, err
			}
			r.variants = append(r.variants, hashOf(object))
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, compareRows)
	root, err := root.with(rows, 0, inMemory)
	return &Tree{s, root}, err
}

// inMemory finds no object: all nodes of a Tree are loaded.
func inMemory(h hash) ([]byte, error) { return nil, fmt.Errorf("the tree lacks the object %x", h[:6]) }

func (t *Tree) parts() (*xds.Snapshot, *node) {
	if t == nil {
		return nil, nil
	}
	return t.snapshot, t.root
}

// ID returns the hash of the resources. The ID depends on the resources alone, and not on the machine or on earlier
// Trees. Without resources, ID is empty.
func (t *Tree) ID() string {
	if t == nil || t.root == nil {
		return ""
	}
	return hex.EncodeToString(t.root.hash[:])
}

// Snapshot returns the resources.
func (t *Tree) Snapshot() *xds.Snapshot {
	if t == nil {
		return xds.NewSnapshot(nil)
	}
	return t.snapshot
}

// about describes a Pack.
type about struct {
	// Base is the ID of the Tree that the Pack changes; empty for a Pack of all resources.
	Base string `json:"base,omitempty"`
	// Tree is the ID of the Tree after the change.
	Tree string `json:"tree"`
	// Removed are the keys that the change removes, such as CDS/web.
	Removed []string `json:"removed,omitempty"`
}

// Pack returns the change from was to t as bytes: in gzip, a line of JSON, and a DiscoveryResponse with the changed
// resources as the history stores them. was may be nil: the bytes have all resources. The same change has the same
// bytes.
func (t *Tree) Pack(was *Tree) ([]byte, error) {
	_, before := was.parts()
	head, changed := about{Base: was.ID(), Tree: t.ID()}, &discoveryv3.DiscoveryResponse{}
	var wrong error
	err := differences(before, t.root, 0, inMemory, func(was, is *row) {
		if is == nil {
			head.Removed = append(head.Removed, was.api+"/"+was.name)
			return
		}
		for _, res := range t.snapshot.Named(xds.Key{Type: typeNamed(is.api), Name: is.name}) {
			element, err := elementOf(res)
			changed.Resources, wrong = append(changed.Resources, element), cmp.Or(wrong, err)
		}
	})
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	line, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	response, err := proto.MarshalOptions{Deterministic: true}.Marshal(changed)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	z := gzip.NewWriter(&data) // no error: a Buffer returns none
	_, _ = z.Write(append(line, '\n'))
	_, _ = z.Write(response)
	_ = z.Close()
	if after, err := was.Unpack(data.Bytes(), nil); err != nil {
		return nil, fmt.Errorf("the change can't be read back: %w", err)
	} else if after.ID() != t.ID() {
		return nil, errors.New("the change can't be read back: a resource is there twice")
	}
	return data.Bytes(), nil
}

// typeNamed returns the type with a short name, such as CDS; nil for none.
func typeNamed(api string) *xds.Type {
	i := slices.IndexFunc(xds.Types, func(t *xds.Type) bool { return t.API == api })
	if i < 0 {
		return nil
	}
	return xds.Types[i]
}

// ErrBase means that a Pack changes another Tree.
var ErrBase = errors.New("the change is of other resources")

// Unpack returns the Tree after a change that Pack has returned. t may be nil, for a Pack of all resources; such a Pack
// does not depend on t. g has the types in the resources. Unpack does not trust the bytes: the ID of the Tree has to be
// the one in the Pack. The error wraps ErrBase if t is not the Tree that the Pack changes.
func (t *Tree) Unpack(data []byte, g *xds.Registry) (*Tree, error) {
	head, response, err := openPack(data, maxFile)
	if err != nil {
		return nil, err
	}
	if head.Base == "" {
		t = nil
	}
	if head.Base != t.ID() {
		return nil, fmt.Errorf("%w: %.12s, and not %.12s", ErrBase, head.Base, t.ID())
	}
	changed := make(map[xds.Key][]*xds.Resource)
	for _, element := range response.Resources {
		r, err := resourceOf(element, g)
		if err != nil {
			return nil, err
		}
		changed[r.Key] = append(changed[r.Key], r)
	}
	for _, text := range head.Removed {
		api, name, _ := strings.Cut(text, "/")
		key := xds.Key{Type: typeNamed(api), Name: name}
		if _, both := changed[key]; both || key.Type == nil {
			return nil, fmt.Errorf("the change removes %.60q, which it also has, or whose type is unknown", text)
		}
		changed[key] = nil
	}
	after, err := NewTree(t.Snapshot().Apply(t.change(changed)), t)
	if err != nil {
		return nil, err
	}
	if after.ID() != head.Tree {
		return nil, fmt.Errorf("the resources have the hash %.12s, and %.12s was published", after.ID(), head.Tree)
	}
	return after, nil
}

// openPack reads the parts of a Pack, which have at most most bytes.
func openPack(data []byte, most int64) (head about, response *discoveryv3.DiscoveryResponse, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return head, nil, err
	}
	loaded, err := io.ReadAll(io.LimitReader(z, most+1))
	switch {
	case err != nil:
		return head, nil, err
	case int64(len(loaded)) > most:
		return head, nil, fmt.Errorf("the resources have more than %d bytes", most)
	}
	line, rest, _ := bytes.Cut(loaded, []byte("\n"))
	if err := json.Unmarshal(line, &head); err != nil {
		return head, nil, fmt.Errorf("the first line of the change is damaged: %w", err)
	}
	response = &discoveryv3.DiscoveryResponse{}
	if err := proto.Unmarshal(rest, response); err != nil {
		return head, nil, err
	}
	if n := len(response.Resources) + len(head.Removed); n > maxKeys {
		return head, nil, fmt.Errorf("the change has %d resources, the limit is %d", n, maxKeys)
	}
	return head, response, nil
}

// change returns the Change that replaces all resources of keys.
func (t *Tree) change(changed map[xds.Key][]*xds.Resource) (c xds.Change) {
	s := t.Snapshot()
	for key, resources := range changed {
		c.Removed = append(c.Removed, s.Named(key)...)
		c.Added = append(c.Added, resources...)
	}
	return c
}
