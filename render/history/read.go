package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/render/publish"
	"xdspub/xds"
)

// maxLoaded bounds the bytes of the resources of an entry.
const maxLoaded = 1 << 30

// History is the history of an output directory as it was at Read. It changes nothing, and takes no lock. Not for
// concurrent use.
type History struct {
	shelf *shelf
}

// Read reads the history of the directory out. A missing directory has an empty history. Close the History after use.
func Read(out string) (*History, error) {
	records, err := publish.OpenRecords(out, folder)
	if err != nil {
		return nil, err
	}
	s, err := readShelf(records)
	if err != nil {
		return nil, errors.Join(err, records.Close())
	}
	h := &History{s}
	h.findFaults()
	return h, nil
}

// Close closes the directory.
func (h *History) Close() error { return h.shelf.records.Close() }

// findFaults finds the entries whose objects are missing or damaged.
func (h *History) findFaults() {
	whole := make(map[hash]bool) // the nodes whose trees are whole
	for _, i := range h.shelf.items {
		if i.Fault != nil {
			continue
		}
		var met []hash
		root, err := h.shelf.root(i.Entry)
		if err == nil {
			err = root.eachOf(h.shelf.find, 0, func(n *node) bool { return !whole[n.hash] }, func(n *node, rows []row) error {
				met = append(met, n.hash)
				for _, r := range rows {
					for _, v := range r.variants {
						if !h.shelf.has(v) {
							return h.missing(v)
						}
					}
				}
				return nil
			})
		}
		if i.Fault = err; err == nil {
			for _, n := range met {
				whole[n] = true
			}
		}
	}
}

func (h *History) missing(object hash) error {
	_, err := h.shelf.find(object)
	return err
}

// Items returns all entries, the latest first. If an entry is not whole, the Item has a Fault.
func (h *History) Items() (items []Item) {
	for _, i := range slices.Backward(h.shelf.items) {
		items = append(items, i.Item)
	}
	return items
}

// Faults returns the faults of files and entries, each once.
func (h *History) Faults() (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(h.shelf.faults)) {
		faults = append(faults, h.shelf.faults[name])
	}
	for _, i := range h.shelf.items {
		if i.Fault != nil && i.pack != nil && h.shelf.faults[i.pack.name] == nil {
			faults = append(faults, fmt.Errorf("entry %s: %w", i.ID, i.Fault))
		}
	}
	return faults
}

// Find returns the entry whose id begins with a prefix of at least MinPrefix digits. The error is an *UnknownError or
// an *AmbiguousError.
func (h *History) Find(prefix string) (Item, error) {
	var found []Item
	for _, i := range h.Items() {
		if len(prefix) >= MinPrefix && strings.HasPrefix(i.ID, strings.ToLower(prefix)) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return Item{}, &UnknownError{What: prefix}
	case 1:
		return found[0], nil
	}
	return Item{}, &AmbiguousError{prefix, found}
}

// At returns the entry that was out at a time. It leaves out what Envoy rejected. The error is a *BeforeError if the
// history begins later.
func (h *History) At(t time.Time) (Item, error) {
	before := &BeforeError{Time: t}
	for _, i := range h.Items() {
		if i.Time.IsZero() || !i.Outcome().WentOut() { // a damaged file has no time
			continue
		}
		if !i.Time.After(t) {
			return i, nil
		}
		before.First = i.Time
	}
	return Item{}, before
}

// Latest returns the latest whole entry that went out; false for none.
func (h *History) Latest() (Item, bool) {
	return h.latest(func(Item) bool { return true })
}

// LatestOf returns the latest whole entry of a snapshot that went out; false for none.
func (h *History) LatestOf(snapshot string) (Item, bool) {
	return h.latest(func(i Item) bool { return i.Snapshot == snapshot })
}

// latest returns the latest whole entry that went out, and that is wanted; false for none.
func (h *History) latest(is func(Item) bool) (Item, bool) {
	for _, i := range h.Items() {
		if i.Fault == nil && i.Outcome().WentOut() && is(i) {
			return i, true
		}
	}
	return Item{}, false
}

// Revision returns the latest entry of a git commit, by a prefix of at least MinPrefix digits. The error is an
// *UnknownError, an *AmbiguousError if commits share the prefix, or a *DirtyError if the history has the commit only
// with other changes.
func (h *History) Revision(commit string) (Item, error) {
	clean, dirty, commits := (*Item)(nil), (*Item)(nil), make(map[string]Item)
	for _, i := range h.Items() {
		for _, revision := range append([]string{i.Revision}, i.Notes.Revisions...) {
			is, with, _ := strings.Cut(revision, "+")
			if len(commit) < MinPrefix || !strings.HasPrefix(is, strings.ToLower(commit)) {
				continue
			}
			if _, ok := commits[is]; !ok {
				commits[is] = i
			}
			if with == "" && clean == nil {
				clean = &i
			} else if with != "" && dirty == nil {
				dirty = &i
			}
		}
	}
	switch {
	case len(commits) > 1:
		e := &AmbiguousError{What: commit}
		for _, is := range slices.Sorted(maps.Keys(commits)) {
			e.Items = append(e.Items, commits[is])
		}
		return Item{}, e
	case clean != nil:
		return *clean, nil
	case dirty != nil:
		return Item{}, &DirtyError{commit, *dirty}
	}
	return Item{}, &UnknownError{What: commit}
}

// Load returns the Snapshot of an entry in the form of a source tree, with all variants. g has the types in the
// resources. A *DamagedError means that the entry is not whole, or differs
// from the published resources.
func (h *History) Load(id string, g *xds.Registry) (*xds.Snapshot, error) {
	item, objects, err := h.resources(id)
	if err != nil {
		return nil, err
	}
	var list []*xds.Resource
	for _, object := range objects {
		r, err := decode(object, g)
		if err != nil {
			return nil, h.damaged(id, err)
		}
		list = append(list, r)
	}
	s := xds.NewSnapshot(list)
	if is := s.ID(); is != item.Content {
		return nil, h.damaged(id, fmt.Errorf("the resources have the snapshot id %s, and %s was published", is, item.Content))
	}
	return s, nil
}

// Document returns the resources of an entry as a DiscoveryResponse, such as load.Parse reads in binary form. The
// resources have their wrappers, with TTLs and constraints of clients.
func (h *History) Document(id string) (*discoveryv3.DiscoveryResponse, error) {
	_, objects, err := h.resources(id)
	if err != nil {
		return nil, err
	}
	d := &discoveryv3.DiscoveryResponse{}
	for _, object := range objects {
		element, err := elementIn(object)
		if err != nil {
			return nil, h.damaged(id, err)
		}
		d.Resources = append(d.Resources, element)
	}
	return d, nil
}

// resources returns the resources of an entry as objects, in the order of types, then by name.
func (h *History) resources(id string) (Item, [][]byte, error) {
	item, err := h.Find(id)
	if err == nil {
		err = item.Fault
	}
	if err != nil {
		return Item{}, nil, err
	}
	root, err := h.shelf.root(item.Entry)
	if err != nil {
		return Item{}, nil, err
	}
	type resource struct {
		row
		objects [][]byte
	}
	var all []resource
	size := 0
	err = root.each(h.shelf.find, 0, func(_ *node, rows []row) error {
		for _, r := range rows {
			of := resource{row: r}
			for _, v := range r.variants {
				object, err := h.shelf.find(v)
				if err != nil {
					return err
				}
				if size += len(object); size > maxLoaded {
					return h.damaged(item.ID, fmt.Errorf("the resources have more than %d bytes", maxLoaded))
				}
				of.objects = append(of.objects, object)
			}
			all = append(all, of)
		}
		return nil
	})
	if err != nil {
		return Item{}, nil, err
	}
	slices.SortFunc(all, func(a, b resource) int { return compareKeys(a.row, b.row) })
	var objects [][]byte
	for _, r := range all {
		objects = append(objects, r.objects...)
	}
	return item, objects, nil
}

// damaged returns the error for an entry whose resources can't be read.
func (h *History) damaged(id string, err error) error {
	return &DamagedError{h.shelf.records.Path(""), fmt.Errorf("entry %s: %w", id, err)}
}
