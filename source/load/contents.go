package load

import (
	"maps"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/settingsfile"
	"xdspub/xds"
)

// contents is the content of a tree at its last read. contents is immutable: the next contents share the
// unchanged parts.
type contents struct {
	root     string
	folders  folders
	files    []*file // this list and the next three in the order of paths
	reported []*file // with findings
	linked   []*file // that a link leads to
	ignoring []*file // with an IgnoreComment
	cut      bool    // further files were left out because of many errors
	inlined  map[string]users
	settings []*file             // the settings files
	whens    *settingsfile.Whens // by them; nil for a tree that was not read yet
	wrong    diag.List           // in several files together
	result   *Result             // nil for a tree that was not read yet
}

// users are the files whose resources inline a file. A map holds users by the absolute path of the inlined
// file.
type users struct {
	path string // as it was read
	of   []*file
}

// edit is a file that came, went or changed; one of the two may be nil.
type edit struct {
	path     string
	old, new *file
}

// ofSettings reports whether the file is, or was, a folder's settings file.
func (e edit) ofSettings() bool {
	return e.old != nil && e.old.found.isSettings || e.new != nil && e.new.found.isSettings
}

// editsBetween leads from some files to others. Each list is in the order of paths.
func editsBetween(old, new []*file) []edit {
	var edits []edit
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].Source.Name < new[0].Source.Name:
			edits, old = append(edits, edit{old[0].Source.Name, old[0], nil}), old[1:]
		case len(old) == 0 || new[0].Source.Name < old[0].Source.Name:
			edits, new = append(edits, edit{new[0].Source.Name, nil, new[0]}), new[1:]
		default:
			if old[0] != new[0] {
				edits = append(edits, edit{new[0].Source.Name, old[0], new[0]})
			}
			old, new = old[1:], new[1:]
		}
	}
	return edits
}

// spliced returns files after edits, with the files that keep accepts. spliced compares only paths near the
// edits, and copies the rest.
func spliced(files []*file, edits []edit, keep func(*file) bool) []*file {
	if len(edits) == 0 {
		return files
	}
	next := make([]*file, 0, len(files)+len(edits))
	for _, e := range edits {
		i, found := searchFile(files, e.path)
		next, files = append(next, files[:i]...), files[i:]
		if found {
			files = files[1:]
		}
		if e.new != nil && keep(e.new) {
			next = append(next, e.new)
		}
	}
	return append(next, files...)
}

// with returns the contents after edits, which are in the order of their paths. cut means that more files
// exist. most bounds the findings.
func (c contents) with(edits []edit, cut bool, most int) contents {
	if len(edits) == 0 && !cut && c.result != nil {
		return c
	}
	before := c.result
	if before == nil {
		before = &Result{}
	}
	c.cut = cut
	c.files = spliced(c.files, edits, func(*file) bool { return true })
	c.reported = spliced(c.reported, edits, func(f *file) bool { return f.Partial || len(f.Diagnostics()) > 0 })
	c.linked = spliced(c.linked, edits, func(f *file) bool { return f.found.beyond })
	c.ignoring = spliced(c.ignoring, edits, func(f *file) bool { return len(f.Ignores) > 0 })
	c.settings = spliced(c.settings, edits, func(f *file) bool { return f.found.isSettings })
	if slices.ContainsFunc(edits, func(e edit) bool { return e.old.count() != e.new.count() || e.ofSettings() }) {
		c.wrong = c.whens.Findings(treeFiles(c.files))
	}
	if cut { // a pattern may match files that were left out
		c.wrong = nil
	}
	r := &Result{Partial: cut, Inlined: before.Inlined, Bytes: before.Bytes, count: before.count, files: c.files, linked: c.linked, ignoring: c.ignoring}
	r.Diagnostics = c.findings(most)
	for _, f := range c.reported {
		r.Partial = r.Partial || f.Partial
		if f.ClientsUnknown {
			r.ClientsUnknownIn = append(r.ClientsUnknownIn, filepath.Dir(f.Source.Name))
		}
	}
	r.ClientsUnknownIn = append(r.ClientsUnknownIn, c.whens.UnknownIn()...)
	named := false
	for _, e := range edits {
		for _, f := range []*file{e.old, e.new} {
			named = named || f != nil && len(f.Inlined) > 0
		}
		r.Bytes += e.new.size() - e.old.size()
		r.count += e.new.count() - e.old.count()
	}
	if named {
		c.inlined = usersAfter(c.inlined, edits)
		r.Inlined = nil
		for _, u := range c.inlined {
			r.Inlined = append(r.Inlined, u.path)
		}
		slices.Sort(r.Inlined)
	}
	if c.result == nil {
		r.snapshot = xds.NewSnapshot(r.Resources())
	} else {
		r.snapshot = before.snapshot.Apply(change(before.snapshot, edits, c.files))
	}
	c.result = r
	return c
}

// findings returns the findings of all files, up to a limit.
func (c contents) findings(most int) diag.List {
	findings := diag.NewBounded(most)
	if c.cut {
		findings.Leave(diag.Error)
	}
	for _, f := range c.reported {
		findings.Add(f.Diagnostics()...)
	}
	findings.Add(c.wrong...)
	return findings.List(diag.Position{File: c.root}, "in the source tree").Sort()
}

// usersAfter are the users of files after edits.
func usersAfter(all map[string]users, edits []edit) map[string]users {
	all = maps.Clone(all)
	if all == nil {
		all = make(map[string]users)
	}
	for _, e := range edits {
		for at, path := range e.old.names() {
			u := users{path, slices.DeleteFunc(slices.Clone(all[at].of), func(f *file) bool { return f == e.old })}
			if all[at] = u; len(u.of) == 0 {
				delete(all, at)
			}
		}
		for at, path := range e.new.names() {
			all[at] = users{path, append(slices.Clip(all[at].of), e.new)}
		}
	}
	return all
}

// names are the files that go into the resources of f, by absolute path.
func (f *file) names() map[string]string {
	if f == nil || len(f.Inlined) == 0 {
		return nil
	}
	names := make(map[string]string, len(f.Inlined))
	for _, in := range f.Inlined {
		at, err := filepath.Abs(in.Path)
		if err != nil { // without a working directory, lookups fail, too
			at = in.Path
		}
		names[at] = in.Path
	}
	return names
}

// change returns the change of a snapshot by edits. Resources that share a Key keep the order of the source:
// if one of them comes or goes, all of them are removed and added again.
func change(s *xds.Snapshot, edits []edit, files []*file) xds.Change {
	var c xds.Change
	removed := make(map[*xds.Resource]bool)
	for _, e := range edits {
		if e.old != nil {
			for _, r := range e.old.Resources {
				removed[r] = true
				c.Removed = append(c.Removed, r)
			}
		}
	}
	shared := make(map[xds.Key]bool)
	in := make(map[string]bool) // files that hold resources of a shared Key
	for _, e := range edits {
		if e.new == nil {
			continue
		}
		for _, r := range e.new.Resources {
			c.Added = append(c.Added, r)
			if shared[r.Key] {
				continue
			}
			for _, other := range s.Named(r.Key) {
				if !removed[other] {
					shared[r.Key] = true
					in[decode.FileOf(other)] = true
					c.Removed = append(c.Removed, other)
				}
			}
		}
	}
	if len(shared) == 0 {
		return c
	}
	c.Added = slices.DeleteFunc(c.Added, func(r *xds.Resource) bool {
		if shared[r.Key] {
			in[decode.FileOf(r)] = true
		}
		return shared[r.Key]
	})
	for _, path := range slices.Sorted(maps.Keys(in)) {
		if i, found := searchFile(files, path); found {
			for _, r := range files[i].Resources {
				if shared[r.Key] {
					c.Added = append(c.Added, r)
				}
			}
		}
	}
	return c
}
