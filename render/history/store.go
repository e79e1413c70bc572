package history

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/xds"
)

const (
	DefaultKeep = 50        // the default of Options.Keep
	DefaultSize = 256 << 20 // the default of Options.Size

	// maxRevisions is the number of further commits that Notes keep.
	maxRevisions = 20
	// maxName bounds the name of a resource in Changes, and maxText a text of an Entry, in bytes.
	maxName = 200
	maxText = 1 << 10
)

// Options of a Store.
type Options struct {
	// Keep is the number of entries to keep; 0 means DefaultKeep. The oldest entries beyond Keep are pruned.
	Keep int
	// Size bounds the bytes of all files; 0 means DefaultSize.
	Size int64
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Store is the history of an output directory, open for writing. Not for concurrent use.
type Store struct {
	records *publish.Records
	options Options
	shelf   *shelf // nil before the files are read
	// last are the resources of the last Record; the zero value after the files are read anew.
	last struct {
		snapshot *xds.Snapshot
		root     *node
	}
	said map[string]bool // the damaged files that the log has
	// protected is the id of the entry that is not pruned; empty for none.
	protected string
}

// Open returns the Store of an output directory that is open for writing. Open reads nothing yet.
func Open(d *publish.Dir, o Options) *Store {
	o.Keep, o.Size = cmp.Or(o.Keep, DefaultKeep), cmp.Or(o.Size, DefaultSize)
	return &Store{records: d.Records(folder), options: o, said: make(map[string]bool)}
}

// Protect keeps an entry from being pruned, in place of the entry of the last Protect; empty protects none.
func (s *Store) Protect(id string) { s.protected = id }

// Record adds an entry with the resources of a Snapshot, and prunes old entries. If the latest entry that went out has
// these resources and the same Entry.Snapshot, Record returns that entry, and notes a new commit or the
// acknowledgement. An error means that the history lacks the entry, or that old entries stay; the next Record tries
// again.
func (s *Store) Record(e Entry, of *xds.Snapshot) (Item, error) {
	item, err := s.record(e, of)
	if err != nil {
		s.shelf = nil // the Store may not know all files
		err = fmt.Errorf("history: %w", err)
	}
	return item, err
}

func (s *Store) record(e Entry, of *xds.Snapshot) (Item, error) {
	if err := s.open(); err != nil {
		return Item{}, err
	}
	w := newPackWriter()
	root, err := s.tree(of, w)
	if err != nil {
		return Item{}, err
	}
	if root != nil {
		e.Tree = hex.EncodeToString(root.hash[:])
	}
	item := s.same(e)
	if item != nil && len(w.has) == 0 { // otherwise, objects of the item are missing
		err = s.noteAgain(item, e)
	} else {
		e.describe(of)
		if before := s.out(); before != nil {
			e.Changes = s.changes(before, root)
		}
		item, err = s.add(e, w)
	}
	if err != nil {
		return Item{}, err
	}
	s.keep(of, root)
	return item.Item, s.prune()
}

// keep keeps the resources of a Record for the next one.
func (s *Store) keep(of *xds.Snapshot, root *node) { s.last.snapshot, s.last.root = of, root }

// open reads the files, unless they are as the Store left them.
func (s *Store) open() error {
	if s.shelf != nil {
		infos, err := s.records.List()
		if err != nil {
			return err
		}
		if maps.Equal(infos, s.shelf.infos) {
			return nil
		}
	}
	s.keep(nil, nil)
	var err error
	if s.shelf, err = readShelf(s.records); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.shelf.faults)) {
		if !s.said[name] {
			s.said[name] = true
			s.options.Log.Write(event.HistoryDamaged{File: s.records.Path(name), Error: s.shelf.faults[name]})
		}
	}
	return nil
}

// tree returns the tree of a Snapshot; nil for a Snapshot without resources. The objects that no file has go to w.
func (s *Store) tree(of *xds.Snapshot, w *packWriter) (*node, error) {
	// If a file is damaged, a node on the shelf does not mean that the shelf has the objects below.
	whole := s.last.snapshot == nil || len(s.shelf.faults) > 0
	was := s.last.snapshot
	if whole {
		was, s.last.root = nil, nil
	}
	var rows []row
	for key, resources := range changedKeys(was, of) {
		r := rowOf(key)
		for _, res := range resources {
			object, err := encode(res)
			if err != nil {
				return nil, err
			}
			h := hashOf(object)
			if r.variants = append(r.variants, h); !s.shelf.has(h) {
				w.add(h, object)
			}
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, compareRows)
	root, err := s.last.root.with(rows, 0, s.shelf.find)
	if err != nil {
		return nil, err
	}
	enter := func(n *node) bool { return whole || !s.shelf.has(n.hash) }
	return root, root.eachOf(s.shelf.find, 0, enter, func(n *node, _ []row) error {
		if !s.shelf.has(n.hash) {
			w.add(n.hash, n.object)
		}
		return nil
	})
}

// changedKeys returns the keys whose resources differ between two Snapshots, with their present resources. was may be
// nil.
func changedKeys(was, is *xds.Snapshot) map[xds.Key][]*xds.Resource {
	changed := make(map[xds.Key][]*xds.Resource)
	for _, t := range xds.Types {
		var before []*xds.Resource
		if was != nil {
			before = was.Of(t)
		}
		after := is.Of(t)
		for len(before) > 0 || len(after) > 0 {
			if len(before) > 0 && len(after) > 0 && before[0] == after[0] {
				before, after = before[1:], after[1:]
				continue
			}
			k := xds.Key{Type: t}
			if len(after) == 0 || len(before) > 0 && before[0].Name < after[0].Name {
				k.Name = before[0].Name
			} else {
				k.Name = after[0].Name
			}
			changed[k] = is.Named(k)
			before, after = without(before, k.Name), without(after, k.Name)
		}
	}
	return changed
}

// without returns a list without the resources of a name at its front.
func without(list []*xds.Resource, name string) []*xds.Resource {
	for len(list) > 0 && list[0].Name == name {
		list = list[1:]
	}
	return list
}

// out returns the latest entry that went out, or nil.
func (s *Store) out() *stored {
	for _, i := range slices.Backward(s.shelf.items) {
		if i.Fault == nil && i.Outcome().WentOut() {
			return i
		}
	}
	return nil
}

// same returns the entry that a new entry only repeats; nil if the new entry is new. An entry that went out repeats
// the latest one that went out, and a rejected entry the latest entry.
func (s *Store) same(e Entry) *stored {
	last := s.out()
	if n := len(s.shelf.items); e.Outcome == Rejected && n > 0 {
		last = s.shelf.items[n-1]
	}
	if last == nil || last.Fault != nil || last.Tree != e.Tree || last.Snapshot != e.Snapshot || e.Outcome == Rejected && last.Outcome() != Rejected {
		return nil
	}
	return last
}

// changes returns the difference of a tree to the resources of an earlier entry; nil if the entry is damaged.
func (s *Store) changes(before *stored, root *node) *Changes {
	was := s.last.root
	if h, err := treeOf(before.Entry); err != nil || was == nil || was.hash != h {
		if was, err = s.shelf.root(before.Entry); err != nil {
			return nil
		}
	}
	c, err := changesBetween(was, root, s.shelf.find)
	if err != nil {
		return nil
	}
	return c
}

// noteAgain notes what is new when the resources of an entry are published again.
func (s *Store) noteAgain(i *stored, e Entry) error {
	n := i.Notes
	if e.Outcome != i.Outcome() && e.Outcome != Unconfirmed && i.Outcome() != Confirmed { // a publish that moves no file asks nobody
		n.Outcome, n.Since, n.By = e.Outcome, e.Time, ""
	}
	latest := i.Revision
	if len(n.Revisions) > 0 {
		latest = n.Revisions[len(n.Revisions)-1]
	}
	if e.Revision != "" && e.Revision != latest {
		n.Revisions = append(slices.Clone(n.Revisions), e.Revision)
		n.Revisions = n.Revisions[max(0, len(n.Revisions)-maxRevisions):]
	} else if n.Outcome == i.Notes.Outcome {
		return nil
	}
	return s.shelf.writeNotes(i, n)
}

// add writes the file of an entry.
func (s *Store) add(e Entry, w *packWriter) (*stored, error) {
	e.Time = e.Time.UTC().Round(0)
	for _, text := range []*string{&e.Author, &e.Subject, &e.By, &e.Reason, &e.Revision, &e.EnvoyPath} {
		*text = diag.Cut(strings.ToValidUTF8(*text, "\uFFFD"), maxText)
	}
	content, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	number, err := s.shelf.next()
	if err != nil {
		return nil, err
	}
	e.ID = idOf(content)
	data := w.finish(content)
	if int64(len(data)) > s.options.Size {
		return nil, fmt.Errorf("an entry needs %d bytes, and --history-size is %d: raise --history-size, or turn the history off by --history 0",
			len(data), s.options.Size)
	}
	base := nameOf(number, e.ID)
	p, err := s.shelf.put(base+entrySuffix, data)
	if err != nil {
		return nil, err
	}
	item := &stored{Item: Item{Entry: e}, base: base, pack: p}
	s.shelf.items = append(s.shelf.items, item)
	return item, nil
}

// Note records what became of an entry. by is the operator who has decided so; empty for nobody. The error is an
// *UnknownError if the history has no such entry.
func (s *Store) Note(id string, o Outcome, by string) error {
	err := s.noteOutcome(id, o, by)
	if _, unknown := errors.AsType[*UnknownError](err); err != nil && !unknown {
		s.shelf = nil
		err = fmt.Errorf("history: %w", err)
	}
	return err
}

func (s *Store) noteOutcome(id string, o Outcome, by string) error {
	if err := s.open(); err != nil {
		return err
	}
	for _, i := range s.shelf.items {
		if i.ID == id && i.Fault == nil {
			n := i.Notes
			n.Outcome, n.Since, n.By = o, time.Now().UTC().Round(0), diag.Cut(by, maxText)
			return s.shelf.writeNotes(i, n)
		}
	}
	return &UnknownError{What: id}
}
