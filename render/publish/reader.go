package publish

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"xdspub/internal/names"
)

// Reader reads the record and the published files of one output directory. It reads again
// only what the file system says has changed. It takes no lock and changes nothing on disk.
// Not for concurrent use.
//
// Nobody may change what it returns.
type Reader struct {
	out    string
	trusts bool
	// looks counts the looks at the directory; each Trust(false) begins a look. Knowledge from before the look
	// since has to be found again.
	looks, since int
	manifest     cached[Manifest]
	base         cached[*base] // the base of manifest, if any
	files        map[string]cached[[]byte]
	settled      map[string]settledFile
	// listed are the files that List found last in the folders; nil before that. came tells
	// of those that were written (true) or removed since.
	listed  []string
	folders map[string]string
	came    map[string]bool
	moves   int             // that moved was told of
	others  map[string]Info // of the listed files that no plan has published (Dir.AsLeft)
}

// NewReader returns a Reader of the directory out.
func NewReader(out string) *Reader {
	return &Reader{out: out, files: make(map[string]cached[[]byte]), settled: make(map[string]settledFile)}
}

// Trust makes the Reader rely on its knowledge without asking the file system, until Trust(false). The cost of
// reading is then in proportion to the changes published since, but the Reader does not see changes by others.
// After Trust(false), the Reader trusts earlier knowledge again once it has found it again: a file that was
// retired and comes back was not checked in between.
func (r *Reader) Trust(trust bool) {
	if r.trusts = trust; !trust {
		r.looks++
		r.since = r.looks
	}
}

// Trusts reports whether the Reader takes what it knows as true.
func (r *Reader) Trusts() bool { return r.trusts }

// cached is the decoded content of a file.
type cached[T any] struct {
	known bool
	info  Info
	// settled tells that every later change of the file gives it another Info.
	settled bool
	value   T
	found   int // in which look
}

// isCurrent reports whether the cached content of a file below root is current.
func isCurrent[T any](r *Reader, root folder, file string, c *cached[T]) bool {
	if !c.known || r.trusts && c.found >= r.since {
		return c.known
	}
	if info, err := root.stat(file); !c.settled || err != nil || info != c.info {
		return false
	}
	c.found = r.looks
	return true
}

// Manifest is the function ReadManifest for the Reader's directory.
func (r *Reader) Manifest() (Manifest, error) { return reading(r.out, r.manifestIn) }

func (r *Reader) manifestIn(root folder) (Manifest, error) {
	known := r.knownBase(root)
	if r.knowsManifest(root, known) {
		return r.manifest.value.shallow(), nil
	}
	now := time.Now()
	info, serr := root.stat(manifestPath)
	m, err := readManifestKnowing(root, known)
	r.manifest = cached[Manifest]{err == nil && serr == nil, info, info.Settled(now), m, r.looks}
	r.keepBase(root, m.Files.base, func(info Info) bool { return info.Settled(now) })
	return m.shallow(), err
}

// knowsManifest reports whether the cached manifest is current. known is the current base.
func (r *Reader) knowsManifest(root folder, known *base) bool {
	return isCurrent(r, root, manifestPath, &r.manifest) && r.manifest.value.Files.base == known
}

// knownBase returns the base of the cached manifest if the base is unchanged.
func (r *Reader) knownBase(root folder) *base {
	if b := &r.base; b.known && isCurrent(r, root, b.value.path(), b) {
		return b.value
	}
	return nil
}

// keepBase keeps the base of the manifest.
func (r *Reader) keepBase(root folder, b *base, settled func(Info) bool) {
	if b == nil {
		r.base = cached[*base]{}
	} else if r.base.value != b {
		info, err := root.stat(b.path())
		r.base = cached[*base]{err == nil, info, settled(info), b, r.looks}
	}
}

// wrote notes that this process has written m into the record.
func (r *Reader) wrote(root folder, m Manifest) {
	info, err := root.stat(manifestPath)
	r.manifest = cached[Manifest]{err == nil, info, true, m, r.looks}
	r.keepBase(root, m.Files.base, func(Info) bool { return true })
}

// shallow returns m with lists of its own; Files and Resources are shared.
func (m Manifest) shallow() Manifest {
	m.Retired, m.DrainingWatches = slices.Clone(m.Retired), slices.Clone(m.DrainingWatches)
	return m
}

// ReadFile is the function ReadFile for the Reader's directory. The bytes are the same slice
// as long as the file does not change.
func (r *Reader) ReadFile(file string) ([]byte, error) {
	if was, out := r.trusted(file); out {
		return was.Data, nil
	}
	return reading(r.out, func(root folder) ([]byte, error) {
		if c := r.files[file]; isCurrent(r, root, file, &c) {
			r.files[file] = c
			return c.value, nil
		}
		delete(r.files, file)
		now := time.Now()
		data, info, err := root.read(file, MaxFile)
		if err == nil {
			r.files[file] = cached[[]byte]{true, info, info.Settled(now), data, r.looks}
		}
		return data, err
	})
}

// StillOut reports whether a published file on disk is unchanged. StillOut asks the file system even while the
// Reader trusts.
func (r *Reader) StillOut(file string) bool {
	was, known := r.settled[file]
	if !known {
		return false
	}
	out, err := reading(r.out, func(root folder) (bool, error) {
		in, err := root.folder(path.Dir(file))
		if err != nil {
			return false, err
		}
		defer in.Close()
		_, ok, err := in.hasFile(path.Base(file), was.File, anyGroup)
		return ok, err
	})
	return out && err == nil
}

// List lists the files that Files finds in folders, each with the base name of its files,
// sorted.
func (r *Reader) List(folders map[string]string) ([]string, error) {
	if r.trusts && r.listed != nil && maps.Equal(folders, r.folders) {
		r.update()
		return r.listed, nil
	}
	listed := []string{}
	for top, base := range folders {
		files, err := Files(r.out, top, base)
		if err != nil {
			return nil, err
		}
		listed = slices.AppendSeq(listed, maps.Keys(files))
	}
	slices.Sort(listed)
	r.listed, r.folders, r.came = listed, folders, nil
	return listed, nil
}

// update adds written and removed files to the list of files. Earlier lists stay unchanged.
func (r *Reader) update() {
	if len(r.came) == 0 {
		return
	}
	r.listed, r.came = names.Merge(r.listed, r.came), nil
}

// moved records that this process has written or removed a file, or tried to; there tells whether the file
// exists now. A failed removal shows in the next look at the disk, which follows each error.
func (r *Reader) moved(file string, there bool) {
	r.moves++
	delete(r.files, file)
	delete(r.settled, file)
	if file == manifestPath {
		r.manifest = cached[Manifest]{}
	}
	top, _, _ := strings.Cut(file, "/")
	if base, ok := r.folders[top]; r.listed == nil || !ok || base != path.Base(file) {
		return
	}
	if _, listed := slices.BinarySearch(r.listed, file); listed == there {
		delete(r.came, file)
		return
	}
	if r.came == nil {
		r.came = make(map[string]bool)
	}
	r.came[file] = there
}

// published records that this process has renamed f into place.
func (r *Reader) published(f File) { r.settled[f.Path] = settledFile{File: f, found: r.looks} }
