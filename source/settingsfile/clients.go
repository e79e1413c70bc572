package settingsfile

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/syntax"
	"xdspub/xds/params"
)

// Clients describes the clients of a file, by the settings files around it. Clients values are immutable and
// shared between files.
type Clients struct {
	params.Constraints
	// At is the place of the rule in the innermost settings file.
	At diag.Range
}

// Equal reports whether two files have the same clients, by rules at the same place.
func (c *Clients) Equal(other *Clients) bool {
	if c == nil || other == nil || c == other {
		return c == other
	}
	return c.At == other.At && c.Constraints.Equal(other.Constraints)
}

// and returns the intersection of c with the clients of a rule. A nil c means any client.
func (c *Clients) and(r whenRule) *Clients {
	if c == nil {
		return &Clients{r.Constraints, r.at}
	}
	return &Clients{params.And(c.Constraints, r.Constraints), r.at}
}

// Limits for the rules of all settings files of a tree. A folder inherits the rules of its parents, so a few
// bytes of rules could otherwise multiply.
const (
	maxFilePatterns = 100      // for the files of one folder
	maxWhenText     = 64 << 20 // bytes of the constraints of all folders
)

// Whens holds the rules of all settings files of a tree.
type Whens struct {
	root string
	of   map[string]*Folder     // settings files with rules, by folder
	in   map[string]*folderWhen // rules for the files of a folder, computed on demand
	text int                    // bytes of the combined constraints
	// wrong are findings about rules that can't be combined. The clients of some files are then unknown.
	wrong diag.List
	// matched caches, by the place of a pattern, a file that the pattern matches.
	matched map[diag.Position]string
}

// folderWhen holds the rules for the files of a folder.
type folderWhen struct {
	all  *Clients            // nil for any client
	some []someWhen          // rules about some files, outermost folder first
	made map[string]*Clients // cache of all with rules of some, by their indexes
}

// someWhen is a whenRule about some files below a folder.
type someWhen struct {
	dir string
	whenRule
}

// NewWhens returns the rules of the settings files of a tree. The settings must be sorted by path.
func NewWhens(root string, settings []*Folder) *Whens {
	w := &Whens{root: filepath.Clean(root), of: make(map[string]*Folder), in: make(map[string]*folderWhen), matched: make(map[diag.Position]string)}
	for _, f := range settings {
		if len(f.rules) > 0 {
			w.of[filepath.Dir(f.Text.Name)] = f
		}
	}
	for _, f := range settings {
		w.folder(filepath.Dir(f.Text.Name))
	}
	return w
}

// IsFull reports whether the constraints exceed maxWhenText. The further constraints are missing then.
func (w *Whens) IsFull() bool { return w.text > maxWhenText }

// UnknownIn returns the folders in which, and below which, the clients of files are unknown, because rules can't be
// combined or the constraints exceed maxWhenText. UnknownIn returns none for a nil Whens.
func (w *Whens) UnknownIn() (folders []string) {
	if w == nil {
		return nil
	}
	for _, d := range w.wrong {
		folders = append(folders, filepath.Dir(d.File))
	}
	if w.IsFull() {
		folders = append(folders, w.root)
	}
	return folders
}

// Clients returns the clients of the file at a path; nil for any client.
func (w *Whens) Clients(path string) *Clients {
	if len(w.of) == 0 {
		return nil
	}
	in := w.folder(filepath.Dir(path))
	is, numbers := in.all, ""
	var rules []whenRule
	for i, s := range in.some {
		if s.covers(path) {
			rules = append(rules, s.whenRule)
			numbers += fmt.Sprint(i, " ")
		}
	}
	if made := in.made[numbers]; made != nil || len(rules) == 0 {
		return made
	}
	if w.IsFull() {
		return in.all
	}
	for _, r := range rules {
		is = is.and(r)
	}
	w.text += len(is.String())
	in.made[numbers] = is
	return is
}

func (s *someWhen) covers(path string) bool {
	below, err := filepath.Rel(s.dir, path)
	return err == nil && slices.ContainsFunc(s.files, func(p filePattern) bool { return fspath.Matches(p.pattern, below) })
}

// folder returns the rules for the files of a folder.
func (w *Whens) folder(dir string) *folderWhen {
	if is := w.in[dir]; is != nil {
		return is
	}
	is := &folderWhen{}
	if parent := filepath.Dir(dir); dir != w.root && dir != parent {
		is = w.folder(parent)
	}
	is = &folderWhen{is.all, slices.Clip(is.some), make(map[string]*Clients)}
	if f := w.of[dir]; f != nil {
		w.add(is, dir, f)
	}
	is.made[""] = is.all
	w.in[dir] = is
	return is
}

// add adds the rules of a settings file to the inherited rules of its folder.
func (w *Whens) add(is *folderWhen, dir string, f *Folder) {
	if w.IsFull() {
		return
	}
	var all []params.Constraints
	patterns := 0
	if is.all != nil {
		all = append(all, is.all.Constraints)
	}
	for _, s := range is.some {
		all = append(all, s.Constraints)
		patterns += len(s.files)
	}
	for _, r := range f.rules {
		all = append(all, r.Constraints)
		patterns += len(r.files)
	}
	wrong := ""
	switch err := params.And(all...).Check(); {
	case err != nil:
		wrong = err.Error() + ", with those of the folders around it"
	case patterns > maxFilePatterns:
		wrong = fmt.Sprintf("there are more than %d patterns of files, with those of the folders around it", maxFilePatterns)
	}
	if wrong != "" {
		w.wrong = append(w.wrong, f.Text.Finding(CodeInvalidWhen, f.rules[0].at, wrong, "remove parameters or files here, or in the folders around it"))
		return
	}
	for _, r := range f.rules {
		if r.files != nil {
			is.some = append(is.some, someWhen{dir, r})
			continue
		}
		is.all = is.all.and(r)
		w.text += len(is.all.String())
	}
}

// Findings returns the findings about rules that can't be combined, and about patterns without a matching
// file. files are the resource files of the tree, sorted by path.
func (w *Whens) Findings(files Files) diag.List {
	if w == nil {
		return nil
	}
	list := slices.Clone(w.wrong)
	if w.IsFull() {
		list = append(list, diag.Diagnostic{
			Code: CodeInvalidWhen.Name, Position: diag.Position{File: w.root},
			Message: fmt.Sprintf("the constraints of the folders of the source tree have more than %d bytes together", maxWhenText),
			Help:    "remove parameters from the xdspub.yaml files",
		})
	}
	for dir, f := range w.of {
		for _, r := range f.rules {
			for _, p := range r.files {
				if !w.matches(p, dir, files) {
					list = append(list, f.Text.Finding(CodeInvalidWhen, p.at, fmt.Sprintf("%q matches no resource file of %s", syntax.Shorten(p.pattern), dir),
						"a pattern without a slash is compared with names, one with a slash with paths below the folder of the settings file"))
				}
			}
		}
	}
	return list.Sort()
}

// matches reports whether a pattern matches a resource file below a folder. matches caches a matching file,
// and tries it first.
func (w *Whens) matches(p filePattern, dir string, files Files) bool {
	if files.Has(w.matched[p.at.Position]) {
		return true
	}
	inside := strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	if dir == "." {
		inside = ""
	}
	for name := range files.Below(inside) {
		if fspath.Matches(p.pattern, name[len(inside):]) {
			w.matched[p.at.Position] = name
			return true
		}
	}
	return false
}

// Files are the resource files of a tree.
type Files interface {
	// Has reports whether a file exists at a path.
	Has(path string) bool
	// Below returns the paths with a prefix.
	Below(beginning string) iter.Seq[string]
}
