package publish

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// Moves counts what d has renamed into place and removed, records too.
func (d *Dir) Moves() int { return d.reader.moves }

// AsLeft reports whether nobody else has changed the directory since the Reader of d read all of it, so far as
// a plan depends on it: the record, the published files, and other files in their folders. AsLeft asks the
// file system about each file, and reads almost none. If AsLeft returns false, it may have stopped early.
func (d *Dir) AsLeft() bool {
	r := d.reader
	if r.listed == nil || !r.knowsManifest(d.root, r.knownBase(d.root)) {
		return false
	}
	r.update()
	if _, err := d.root.stat(intentPath); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	now := survey{d: d, listed: []string{}, others: make(map[string]Info)}
	for top, base := range r.folders {
		if !now.folder(top, base) {
			return false
		}
	}
	slices.Sort(now.listed)
	same := slices.Equal(now.listed, r.listed) && maps.Equal(now.others, r.others)
	r.others = now.others
	if same {
		r.since = 0 // the survey has confirmed all that r knows
	}
	return same
}

// survey is a look at all published files.
type survey struct {
	d      *Dir
	listed []string        // the files that Reader.List finds
	others map[string]Info // the listed files that no plan has published
}

// folder surveys a folder in the manner of Files, and reports whether its published files are unchanged.
func (s *survey) folder(top, base string) bool {
	in, err := s.d.root.folder(top)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer in.Close()
	itself, err := in.info()
	if err != nil {
		return false
	}
	names, err := in.names()
	if err != nil {
		return false
	}
	for _, name := range names {
		folder, file := itself, name
		if name != base {
			if folder, err = in.lstat(name); err != nil || !folder.Mode.IsDir() {
				continue
			}
			file = name + "/" + base
		}
		info, err := in.lstat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode.IsDir():
		case err != nil, !s.file(path.Join(top, file), folder, info):
			return false
		}
	}
	return true
}

// file records a file, and reports whether it is as published.
func (s *survey) file(file string, folder, info Info) bool {
	s.listed = append(s.listed, file)
	was, known := s.d.reader.settled[file]
	switch {
	case !known:
		s.others[file] = info
		return true
	case was.settled:
		return was.holds(folder, info)
	}
	is, out, err := s.d.root.look(was.File, s.d.gid)
	if out {
		s.d.reader.keep(is)
	}
	return err == nil && out
}
