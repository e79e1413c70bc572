package load

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"xdspub/internal/fspath"
	"xdspub/source/settingsfile"
)

// Update is Load for known paths that changed since the last call. The paths are absolute, as reached from
// root, whether something exists there now or not. If a path is a folder, anything inside may have changed.
// Update takes all other files as unchanged, so that its cost is in proportion to the change. If the paths
// don't suffice, Update calls Load.
func (l *Loader) Update(ctx context.Context, root string, changed []string) (*Result, error) {
	if l.failed || l.known.result == nil || l.known.root != root || l.known.cut || l.known.folders.at == nil || len(l.overlay) > 0 {
		return l.Load(ctx, root)
	}
	t, single, err := l.open(root)
	if err != nil || single {
		return l.Load(ctx, root)
	}
	defer t.close()
	t.ended = func() bool { return ctx.Err() != nil }
	next, ok := l.update(ctx, t, changed)
	if !ok {
		return l.Load(ctx, root)
	}
	l.known = next
	return next.result, nil
}

// update returns the contents after the change. ok is false, and nothing has changed, if only a read of the
// whole tree can tell.
func (l *Loader) update(ctx context.Context, t *tree, changed []string) (next contents, ok bool) {
	base, err := filepath.Abs(t.root)
	if err != nil || l.known.folders.at[filepath.Clean(t.root)].real != t.folders[0].real {
		return contents{}, false
	}
	u := updater{finder: finder{l: l, tree: t, folders: l.known.folders}, base: base, again: make(map[string]*file), wide: make(map[string]bool)}
	for _, path := range slices.Sorted(slices.Values(changed)) {
		if !u.look(ctx, path) {
			return contents{}, false
		}
	}
	u.lookAtUsers()
	edits, ok := u.edits(ctx)
	if !ok {
		return contents{}, false
	}
	known := l.known
	known.whens = u.whens
	next = known.with(edits, false, l.findings)
	next.folders = u.folders
	errors := len(next.wrong)
	for _, f := range next.reported {
		errors += f.errors()
	}
	return next, errors < l.findings
}

// updater looks at what changed in a tree.
type updater struct {
	finder
	base  string              // the root, absolute
	seen  []string            // folders that were gone through
	again map[string]*file    // known files that may have changed, by path
	whens *settingsfile.Whens // from the present settings files
	// paths are the paths of the old folders, sorted; nil until a folder has changed.
	paths []string
	// changed are the changed paths, wide the changed paths that may be folders.
	changed []string
	wide    map[string]bool
}

// look takes one path up that changed.
func (u *updater) look(ctx context.Context, path string) (ok bool) {
	if fspath.Within(u.base, path) {
		return false
	}
	below, err := filepath.Rel(u.base, path)
	if err != nil {
		return false
	}
	u.changed = append(u.changed, path)
	if !filepath.IsLocal(below) || u.l.leftOut(below) {
		u.wide[path] = true
		return true
	}
	at := filepath.Join(u.tree.root, below)
	if slices.ContainsFunc(u.seen, func(dir string) bool { return fspath.Within(at, dir) }) {
		return true
	}
	info, err := os.Lstat(at)
	exists := err == nil
	known, wasFile := u.known(at)
	_, wasFolder := u.folders.at[at]
	switch {
	case !exists && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR),
		exists && info.Mode()&fs.ModeSymlink != 0,
		wasFile && (known.found.linked || known.found.isOutside || known.found.unreadable != nil):
		return false // what a link leads to is for a look at all
	case wasFile:
		u.again[at] = known
	}
	u.wide[path] = wasFolder || !exists || info.IsDir()
	if wasFolder || exists && info.IsDir() {
		u.leave(at)
	}
	if !exists {
		return true
	}
	in, ok := u.folders.at[filepath.Dir(at)]
	return ok && u.entry(ctx, below, in, fs.FileInfoToDirEntry(info)) == nil
}

// known is what is known of the file at a path.
func (u *updater) known(path string) (f *file, ok bool) {
	files := u.l.known.files
	i, ok := searchFile(files, path)
	if !ok {
		return nil, false
	}
	return files[i], true
}

// leave takes a folder out of the tree, with all in it.
func (u *updater) leave(dir string) {
	inside := dir + string(filepath.Separator)
	if u.paths == nil { // the folders are still those of the contents before
		u.paths, u.folders = slices.Sorted(maps.Keys(u.folders.at)), u.folders.clone()
	}
	u.folders.drop(dir)
	for i, _ := slices.BinarySearch(u.paths, inside); i < len(u.paths) && strings.HasPrefix(u.paths[i], inside); i++ {
		u.folders.drop(u.paths[i])
	}
	u.seen = append(u.seen, dir)
	files := u.l.known.files
	i, _ := searchFile(files, inside)
	for _, f := range files[i:] {
		if !strings.HasPrefix(f.Source.Name, inside) {
			break
		}
		u.again[f.Source.Name] = f
	}
}

// lookAtUsers records the files whose resources inline a changed file, or a file below a changed path. For a
// path that may be a folder, lookAtUsers visits all inlined files.
func (u *updater) lookAtUsers() {
	inlined := u.l.known.inlined
	wide := false
	for _, path := range u.changed {
		u.readAgain(inlined[path].of)
		wide = wide || u.wide[path]
	}
	if !wide {
		return
	}
	for path, users := range inlined {
		for dir := path; ; dir = filepath.Dir(dir) {
			if u.wide[dir] {
				u.readAgain(users.of)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
}

// readAgain takes up files that were known.
func (u *updater) readAgain(files []*file) {
	for _, f := range files {
		if u.again[f.Source.Name] == nil {
			u.again[f.Source.Name] = f
			u.found = append(u.found, f.found)
		}
	}
}

// leaveOut takes a file out of what the tree has.
func (u *updater) leaveOut(f *file) {
	u.tree.bytes.Add(-f.size())
	u.tree.resources.Add(-int64(len(f.Resources)))
}

// lookAround records the changed settings files, and returns the files that had other clients before.
func (u *updater) lookAround(own []*file) (others []entry) {
	known := u.l.known
	u.whens = known.whens
	same := slices.DeleteFunc(slices.Clone(known.settings), func(f *file) bool { return u.again[f.Source.Name] != nil })
	if len(own) == 0 && len(same) == len(known.settings) {
		return nil
	}
	u.whens = settingsfile.NewWhens(u.tree.root, foldersOf(together(own, same)))
	for _, f := range known.files {
		if u.again[f.Source.Name] == nil && !f.found.isSettings && !u.whens.Clients(f.Source.Name).Equal(f.found.clients) {
			u.again[f.Source.Name] = f
			u.leaveOut(f)
			others = append(others, f.found)
		}
	}
	return others
}

// edits reads what was found, and tells how the tree differs from what is known.
func (u *updater) edits(ctx context.Context) (edits []edit, ok bool) {
	slices.SortFunc(u.found, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	u.found = slices.Compact(u.found)
	for i := 1; i < len(u.found); i++ {
		if u.found[i].path == u.found[i-1].path { // two entries: a user has become another kind of entry
			return nil, false
		}
	}
	u.tree.bytes.Store(u.l.known.result.Bytes)
	u.tree.resources.Store(int64(u.l.known.result.Snapshot().Len()))
	for _, f := range u.again {
		u.leaveOut(f)
	}
	settings, others := apart(u.found)
	files, err := u.l.readAll(ctx, u.tree, settings)
	if err != nil || len(files) < len(settings) {
		return nil, false
	}
	others = append(others, u.lookAround(files)...)
	slices.SortFunc(others, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	of, err := u.l.readFor(ctx, u.tree, others, u.whens)
	if err != nil || len(of) < len(others) || u.whens.IsFull() {
		return nil, false
	}
	files = together(files, of)
	var old []*file
	for _, f := range u.again {
		old = append(old, f)
	}
	slices.SortFunc(old, func(a, b *file) int { return strings.Compare(a.Source.Name, b.Source.Name) })
	return editsBetween(old, files), true
}
