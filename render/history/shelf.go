package history

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"xdspub/render/publish"
)

const (
	folder = "history" // in .xdspub

	entrySuffix   = ".entry"
	objectsSuffix = ".objects"
	notesSuffix   = ".notes"

	// maxFiles bounds the files of a history, and maxBytes their bytes.
	maxFiles = 50_000
	maxBytes = 4 << 30
	// maxNumber is the number of the last file.
	maxNumber = 9_999_999_999
	// listTries bounds the attempts to read files that a running process removes meanwhile.
	listTries = 5
)

// fileName matches the name of a file: its number, an id, and its kind.
var fileName = regexp.MustCompile(`^([0-9]{10})-([0-9a-f]{12})(\.entry|\.objects|\.notes)$`)

// nameOf returns the name of a file without its suffix.
func nameOf(number int64, id string) string { return fmt.Sprintf("%010d-%s", number, id) }

// idOf returns the id for the content of a file.
func idOf(content []byte) string {
	h := hashOf(content)
	return hex.EncodeToString(h[:6])
}

// shelf has the files of a history.
type shelf struct {
	records *publish.Records
	infos   map[string]publish.Info // of all files, when they were read
	packs   []*pack                 // the largest first
	items   []*stored               // the oldest first
	faults  map[string]error        // of the files that can't be used, by name
}

// stored is an Item with its file.
type stored struct {
	Item
	base string // the name of the file without a suffix
	pack *pack  // nil if the file can't be read
}

// readShelf reads all files.
func readShelf(r *publish.Records) (s *shelf, err error) {
	for range listTries {
		s = &shelf{records: r, faults: make(map[string]error)}
		if s.infos, err = r.List(); err != nil {
			return nil, err
		}
		if s.infos == nil {
			s.infos = make(map[string]publish.Info)
		}
		if err = s.read(); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return nil, err
}

// read reads the files that infos names, the latest first, up to the limits. fs.ErrNotExist means that a file was
// removed meanwhile.
func (s *shelf) read() error {
	left := int64(maxBytes)
	for n, name := range slices.Backward(slices.Sorted(maps.Keys(s.infos))) {
		if size := s.infos[name].Size(); size <= maxFile { // a larger file is not read
			left -= size
		}
		if left < 0 || len(s.infos)-n > maxFiles {
			s.faults[name] = fmt.Errorf("the history has more than %d bytes or %d files: remove the oldest files", int64(maxBytes), maxFiles)
		} else if err := s.readFile(name); err != nil {
			return err
		}
	}
	slices.Reverse(s.items)
	s.sort()
	return nil
}

// sort sorts the packs. Large packs have most objects, and are searched first.
func (s *shelf) sort() {
	slices.SortStableFunc(s.packs, func(a, b *pack) int { return cmp.Compare(b.size, a.size) })
}

// readFile reads one file.
func (s *shelf) readFile(name string) error {
	parts := fileName.FindStringSubmatch(name)
	if parts == nil {
		s.faults[name] = errors.New("xdspub has not written this file: remove the file")
		return nil
	}
	if parts[3] == notesSuffix {
		return nil // read with its entry
	}
	item := &stored{base: strings.TrimSuffix(name, parts[3])}
	item.ID = parts[2]
	data, err := s.records.Read(name, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if item.pack, err = parsePack(name, data); err == nil {
			s.packs = append(s.packs, item.pack)
		}
	}
	if parts[3] == entrySuffix {
		if err == nil {
			err = item.readEntry(s.records)
		}
		s.items = append(s.items, item)
	}
	if err != nil {
		item.Fault = &DamagedError{s.records.Path(name), err}
		s.faults[name] = item.Fault
	}
	return nil
}

// readEntry reads the entry in the file of an item, and its notes. Damaged notes count as none.
func (i *stored) readEntry(r *publish.Records) error {
	if idOf(i.pack.entry) != i.ID {
		return errors.New("the entry is damaged: its hash is not its id" + remedy)
	}
	e := Entry{ID: i.ID}
	if err := json.Unmarshal(i.pack.entry, &e); err != nil {
		return fmt.Errorf("the entry is damaged: %w"+remedy, err)
	}
	if _, err := treeOf(e); err != nil {
		return err
	}
	i.Entry = e
	if data, err := r.Read(i.base+notesSuffix, maxEntry); err == nil {
		var n Notes
		if json.Unmarshal(data, &n) == nil {
			i.Notes = n
		}
	}
	return nil
}

// treeOf returns the hash of the resources of an entry.
func treeOf(e Entry) (h hash, err error) {
	b, err := hex.DecodeString(e.Tree)
	if err != nil || len(b) != 0 && len(b) != len(h) {
		return h, errors.New("the entry is damaged: its tree is no hash" + remedy)
	}
	copy(h[:], b)
	return h, nil
}

// locate returns the pack of an object, and the place in the pack; nil for an unknown object.
func (s *shelf) locate(h hash) (*pack, place) {
	for _, p := range s.packs {
		if at, ok := p.table.find(h); ok {
			return p, at
		}
	}
	return nil, place{}
}

// has reports whether locate finds an object.
func (s *shelf) has(h hash) bool {
	p, _ := s.locate(h)
	return p != nil
}

// find returns an object.
func (s *shelf) find(h hash) ([]byte, error) {
	p, at := s.locate(h)
	if p == nil {
		return nil, &DamagedError{s.records.Path(""), fmt.Errorf("a file is missing, or damaged: no file has the object %x; restore the file from a backup", h[:6])}
	}
	object, err := p.object(h, at, func(b []byte, offset int64) error { return s.records.ReadAt(p.name, b, offset) })
	if err != nil {
		return nil, &DamagedError{s.records.Path(p.name), err}
	}
	return object, nil
}

// root returns the root of the tree of an entry.
func (s *shelf) root(e Entry) (*node, error) {
	h, err := treeOf(e)
	if err != nil {
		return nil, err
	}
	return rootOf(h, s.find)
}

// next returns the number of the next file.
func (s *shelf) next() (int64, error) {
	last := int64(0)
	for name := range s.infos {
		if parts := fileName.FindStringSubmatch(name); parts != nil {
			n, _ := strconv.ParseInt(parts[1], 10, 64) // ten digits
			last = max(last, n)
		}
	}
	if last >= maxNumber {
		return 0, fmt.Errorf("%s has a file with the last number, %d: remove the file", s.records.Path(""), int64(maxNumber))
	}
	return last + 1, nil
}

// put writes a file of entries or objects, and takes it on the shelf.
func (s *shelf) put(name string, data []byte) (*pack, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s would have %d bytes, the limit is %d", s.records.Path(name), len(data), maxFile)
	}
	p, err := parsePack(name, data)
	if err != nil {
		return nil, err
	}
	if err := s.write(name, data); err != nil {
		return nil, err
	}
	s.packs = append(s.packs, p)
	s.sort()
	return p, nil
}

// write writes a file.
func (s *shelf) write(name string, data []byte) (err error) {
	if err = s.records.Write(name, data); err == nil {
		s.infos[name], err = s.records.Stat(name)
	}
	return err
}

// remove removes a file, if it exists.
func (s *shelf) remove(name string) error {
	delete(s.infos, name)
	s.packs = slices.DeleteFunc(s.packs, func(p *pack) bool { return p.name == name })
	return s.records.Remove(name)
}

// retire makes the file of an entry a file of objects.
func (s *shelf) retire(i *stored) error {
	name := i.base + objectsSuffix
	if err := s.records.Rename(i.pack.name, name); err != nil {
		return err
	}
	info, err := s.records.Stat(name)
	if err != nil {
		return err
	}
	delete(s.infos, i.pack.name)
	s.infos[name] = info
	i.pack.name = name
	s.items = slices.DeleteFunc(s.items, func(other *stored) bool { return other == i })
	if _, noted := s.infos[i.base+notesSuffix]; noted {
		return s.remove(i.base + notesSuffix)
	}
	return nil
}

// writeNotes writes the notes of an item.
func (s *shelf) writeNotes(i *stored, n Notes) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := s.write(i.base+notesSuffix, append(data, '\n')); err != nil {
		return err
	}
	i.Notes = n
	return nil
}
