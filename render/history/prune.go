package history

import (
	"cmp"
	"slices"
	"strings"
)

// sweepAfter is the number of files of objects after which a Record sweeps. So most publishes do not read the trees
// of all entries.
const sweepAfter = 32

// smallFile is the size of a file that each sweep joins with others.
const smallFile = 64 << 10

// prune retires entries beyond the limits, except the protected one. If many files or too many bytes are there, prune
// sweeps.
func (s *Store) prune() error {
	live := s.live()
	for n := 0; len(live) > s.options.Keep && n < len(live); {
		if live[n].ID == s.protected {
			n++
			continue
		}
		if err := s.shelf.retire(live[n]); err != nil {
			return err
		}
		live = slices.Delete(live, n, n+1)
	}
	objects, total := 0, int64(0)
	for _, p := range s.shelf.packs {
		total += p.size
		if !p.isEntry() {
			objects++
		}
	}
	if objects < sweepAfter && total <= s.options.Size {
		return nil
	}
	return s.sweep(live, total > s.options.Size)
}

// live returns the entries that are not damaged, the oldest first.
func (s *Store) live() []*stored {
	return slices.DeleteFunc(slices.Clone(s.shelf.items), func(i *stored) bool { return i.Fault != nil })
}

// sweep joins files of objects, and leaves out the objects that no entry needs. If full, the files are larger than
// Options.Size: sweep retires old entries until three quarters suffice, and rewrites each file with an unneeded
// object. Otherwise, sweep rewrites a file only if half of it is not needed, if it is small, or if the smaller
// files together are as large, so that a byte is rewritten a few times at most.
func (s *Store) sweep(live []*stored, full bool) error {
	needed, err := s.needed(live, full)
	if err != nil {
		return err
	}
	var files []*pack
	for _, p := range s.shelf.packs {
		if p.isEntry() {
			for i := range p.table.Len() {
				delete(needed, p.table.hash(i))
			}
		} else {
			files = append(files, p)
		}
	}
	files = s.toRewrite(files, needed, full)
	if len(files) == 0 {
		return nil
	}
	return s.join(files, needed)
}

// needed returns the objects of the live entries. If full, needed retires the oldest entries, except the protected one.
func (s *Store) needed(live []*stored, full bool) (map[hash]bool, error) {
	needed, size := make(map[hash]bool), int64(0)
	for _, i := range live {
		if i.ID == s.protected {
			size = s.sizeOf(s.mark(i, needed))
		}
	}
	for n, i := range slices.Backward(live) {
		own := s.mark(i, needed)
		size += s.sizeOf(own) + int64(len(i.pack.entry))
		newest := n == len(live)-1
		if !full || size <= s.options.Size/4*3 || newest && size <= s.options.Size {
			continue
		}
		for _, h := range own {
			delete(needed, h)
		}
		for _, old := range live[:n+1] {
			if old.ID == s.protected {
				continue
			}
			if err := s.shelf.retire(old); err != nil {
				return nil, err
			}
		}
		break
	}
	return needed, nil
}

// sizeOf returns the bytes of objects.
func (s *Store) sizeOf(objects []hash) (size int64) {
	for _, h := range objects {
		p, at := s.shelf.locate(h)
		size += p.sizeIn(at)
	}
	return size
}

// mark adds the objects of an entry to needed, and returns the added ones. If objects are missing, mark adds those
// before the first missing one.
func (s *Store) mark(i *stored, needed map[hash]bool) (own []hash) {
	mark := func(h hash) {
		if !needed[h] && s.shelf.has(h) {
			needed[h] = true
			own = append(own, h)
		}
	}
	root, err := s.shelf.root(i.Entry)
	if err != nil {
		return nil
	}
	_ = root.eachOf(s.shelf.find, 0, func(n *node) bool { return !needed[n.hash] }, func(n *node, rows []row) error {
		mark(n.hash)
		for _, r := range rows {
			for _, h := range r.variants {
				mark(h)
			}
		}
		return nil
	})
	return own
}

// toRewrite returns the files of objects to join.
func (s *Store) toRewrite(files []*pack, needed map[hash]bool, full bool) (list []*pack) {
	slices.SortStableFunc(files, func(a, b *pack) int { return cmp.Compare(a.size, b.size) })
	small, size := 0, int64(0)
	for small < len(files) && files[small].size <= max(size, smallFile) {
		size += files[small].size
		small++
	}
	for n, p := range files {
		unneeded := int64(0)
		for i := range p.table.Len() {
			if !needed[p.table.hash(i)] {
				unneeded += p.sizeIn(p.table.place(i))
			}
		}
		if small > 1 && n < small || full && unneeded > 0 || unneeded > p.size/2 {
			list = append(list, p)
		}
	}
	return list
}

// join writes the needed objects of files into one file, and removes the files.
func (s *Store) join(files []*pack, needed map[hash]bool) error {
	w := newPackWriter()
	for _, p := range s.shelf.packs {
		if !p.isEntry() && !slices.Contains(files, p) {
			for i := range p.table.Len() {
				delete(needed, p.table.hash(i))
			}
		}
	}
	for _, p := range files {
		err := p.objects(func(h hash, _ place) error {
			if !needed[h] || w.has[h] {
				return nil
			}
			object, err := s.shelf.find(h)
			if err == nil {
				w.add(h, object)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(w.has) > 0 {
		data := w.finish(nil)
		first := slices.MinFunc(files, func(a, b *pack) int { return strings.Compare(a.name, b.name) })
		number, _, _ := strings.Cut(first.name, "-")
		name := number + "-" + idOf(data) + objectsSuffix
		if slices.ContainsFunc(files, func(p *pack) bool { return p.name == name }) {
			return nil // the file has only these objects already
		}
		if _, err := s.shelf.put(name, data); err != nil {
			return err
		}
		if err := s.records.Flush(); err != nil {
			return err
		}
	}
	for _, p := range files {
		if err := s.shelf.remove(p.name); err != nil {
			return err
		}
	}
	return nil
}
