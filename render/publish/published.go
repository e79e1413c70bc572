package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	basesPath = private + "/files"

	// maxChanged is how many files a record holds itself. With more of them, it refers to a
	// base and holds the changes: an edit writes two records, and must not write the names of
	// all files each time.
	maxChanged = 256
	// baseTries bounds the attempts to read a record whose base is missing.
	baseTries = 3
)

// Published identifies the content of a published file.
type Published struct {
	Version string `json:"version"` // its version_info
	Sum     string `json:"sum"`     // a hash of its bytes
}

// PublishedFiles are the published files by path. The zero value is empty. A value is immutable: with returns
// another value, which shares the unchanged parts.
type PublishedFiles struct {
	base *base // nil for none
	// changed are the files that differ from base; nil for a file that is no longer published.
	changed map[string]*Published
	// lost means that somebody has removed or damaged the base, so that files are missing here.
	lost bool
}

// base is a set of published files in its own file, which never changes.
type base struct {
	sum   string // of its bytes, and its name
	files map[string]Published
}

// baseFile is the form of a base on disk.
type baseFile struct {
	Layout int                  `json:"layout"`
	Files  map[string]Published `json:"files"`
}

// Get returns the published file at a path.
func (p PublishedFiles) Get(file string) (Published, bool) {
	if f, ok := p.changed[file]; ok {
		if f == nil {
			return Published{}, false
		}
		return *f, true
	}
	if p.base == nil {
		return Published{}, false
	}
	f, ok := p.base.files[file]
	return f, ok
}

// Names returns the paths of the published files, sorted.
func (p PublishedFiles) Names() []string {
	var names []string
	for name, f := range p.changed {
		if f != nil {
			names = append(names, name)
		}
	}
	if p.base != nil {
		for name := range p.base.files {
			if _, changed := p.changed[name]; !changed {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// IsZero reports whether there are no published files, and no base to refer to.
func (p PublishedFiles) IsZero() bool { return p.base == nil && len(p.changed) == 0 }

// with returns the published files after a change: nil stands for a file that is removed.
func (p PublishedFiles) with(change map[string]*Published) PublishedFiles {
	next := PublishedFiles{base: p.base, changed: maps.Clone(p.changed)}
	if next.changed == nil {
		next.changed = make(map[string]*Published)
	}
	for name, f := range change {
		is := PublishedFiles{base: p.base}
		switch was, out := is.Get(name); {
		case f == nil && !out, f != nil && out && *f == was:
			delete(next.changed, name)
		default:
			next.changed[name] = f
		}
	}
	return next
}

// Incomplete reports whether files are missing because somebody has removed or damaged the base. The next
// publish of all files ends that.
func (p PublishedFiles) Incomplete() bool { return p.lost }

// Equal reports whether both are complete and equal.
func (p PublishedFiles) Equal(o PublishedFiles) bool {
	if p.lost || o.lost {
		return false
	}
	if p.base != o.base {
		names := p.Names()
		same := func(name string) bool { return p.sameAt(o, name) }
		return slices.Equal(names, o.Names()) && !slices.ContainsFunc(names, func(name string) bool { return !same(name) })
	}
	for _, changed := range []map[string]*Published{p.changed, o.changed} {
		for name := range changed {
			if !p.sameAt(o, name) {
				return false
			}
		}
	}
	return true
}

func (p PublishedFiles) sameAt(o PublishedFiles, name string) bool {
	is, out := p.Get(name)
	was, had := o.Get(name)
	return out == had && is == was
}

// layout returns the layout of a record that holds p.
func (p PublishedFiles) layout() int {
	if p.base == nil {
		return 1
	}
	return layout
}

// folded returns p with a base of its own, as a file, and no changes.
func (p PublishedFiles) folded() (PublishedFiles, File) {
	all := baseFile{Layout: layout, Files: make(map[string]Published)}
	names := p.Names()
	b := fmt.Appendf(make([]byte, 0, 160*len(names)), `{"layout":%d,"files":{`, layout)
	for i, name := range names {
		f, _ := p.Get(name)
		all.Files[name] = f
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, '\n'), name)
		b = appendString(append(b, `:{"version":`...), f.Version)
		b = appendString(append(b, `,"sum":`...), f.Sum)
		b = append(b, '}')
	}
	b = append(b, "\n}}\n"...)
	is := &base{sum(b), all.Files}
	return PublishedFiles{base: is}, File{Path: is.path(), Data: b}
}

// appendString appends a string in JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string can be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func (b *base) path() string { return path.Join(basesPath, b.sum) }

// onDisk is the form of PublishedFiles with a base in a record. Without a base, the record has the files
// alone.
type onDisk struct {
	Base    string                `json:"base"`
	Changed map[string]*Published `json:"changed,omitempty"`
}

// MarshalJSON encodes p for a record.
func (p PublishedFiles) MarshalJSON() ([]byte, error) {
	if p.base == nil {
		return json.Marshal(p.changed)
	}
	return json.Marshal(onDisk{p.base.sum, p.changed})
}

// UnmarshalJSON decodes p from a record. Its base has yet to be read.
func (p *PublishedFiles) UnmarshalJSON(data []byte) error {
	var head struct {
		Base json.RawMessage `json:"base"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Base == nil { // no file has that path
		return json.Unmarshal(data, &p.changed)
	}
	var is onDisk
	if err := json.Unmarshal(data, &is); err != nil {
		return err
	}
	if strings.Trim(is.Base, "0123456789abcdef") != "" || len(is.Base) != len(sum(nil)) {
		return fmt.Errorf("invalid name %q of a base", is.Base)
	}
	*p = PublishedFiles{base: &base{sum: is.Base}, changed: is.Changed}
	return nil
}

// check refuses paths in the record itself that no published file can have.
func (p PublishedFiles) check() error {
	for name, f := range p.changed {
		if f == nil && p.base == nil {
			return fmt.Errorf("no entry for %q", name)
		}
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

// completed reads a record and, if the record refers to one, its base; known is used if it is that base. If
// the base is missing or damaged, a writer has replaced base and record meanwhile, or somebody has removed or
// damaged the base. In the second case, only the changes are known until all files are published again.
func completed(root folder, known *base, read func() (*PublishedFiles, error)) error {
	for n := 1; ; n++ {
		p, err := read()
		if err != nil || p == nil || p.base == nil {
			return err
		}
		if known != nil && known.sum == p.base.sum {
			p.base = known
			return nil
		}
		if whole, err := p.base.read(root); whole || err != nil {
			return err
		}
		if n == baseTries {
			*p = PublishedFiles{}.with(p.changed)
			p.lost = true
			return nil
		}
	}
}

// read reads the base's file by its name, and reports whether the file is present and undamaged.
func (b *base) read(root folder) (whole bool, err error) {
	data, _, err := root.read(b.path(), maxRecord)
	if errors.Is(err, fs.ErrNotExist) || isOther(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var is baseFile
	if sum(data) != b.sum || json.Unmarshal(data, &is) != nil {
		return false, nil
	}
	for name := range is.Files {
		if checkName(name) != nil {
			return false, nil
		}
	}
	b.files = is.Files
	return true, nil
}

// fold gives the record of p a base of its own where it would hold too many changes, and returns
// that base as a file.
func (d *Dir) fold(p *Plan) ([]File, error) {
	if len(p.Manifest.Files.changed) <= d.maxChanged {
		return nil, nil
	}
	files, base := p.Manifest.Files.folded()
	p.Manifest.Files = files
	return []File{base}, d.ensureFolder(basesPath, 0o700, anyGroup)
}
