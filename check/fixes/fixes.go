// Package fixes carries out the fixes of findings. It changes texts in memory, and judges the texts again until no
// fix remains. Only then it writes the files, or the difference.
//
//	run := fixes.New(false)
//	result, err = run.Fix(result, fixes.Scope{Root: "config"}, judge) // judge reads run.Texts() instead of files
//	err = run.Write()
package fixes

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/internal/fspath"
)

// maxRounds is the largest number of times that Fix changes the texts of a tree. A round makes fixes of findings that
// the round before has uncovered, or whose edits overlapped.
const maxRounds = 100

// Run holds the texts of files with their fixes.
type Run struct {
	unsafe bool
	files  map[string]*file // by path without links; standard input by its name
	named  map[string]*file // by the names in findings
	// refused has the reason why a file can't be changed, by the name in findings.
	refused map[string]string
	roots   map[string]*os.Root
	made    int
	rounds  int // of the last Fix
}

// file is a text that a fix may change.
type file struct {
	place       // of a file on disk; the zero place for a text that is not a file's
	name        string
	before, now []byte
	envoy       *envoyapi.Version
}

// Scope says which files of a tree may change.
type Scope struct {
	// Root is the folder of the files. A link out of Root is not followed.
	Root string
	// May reports whether a file may change; nil means that all files below Root may.
	May func(file string) bool
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
}

func (s Scope) may(file string) bool { return s.May == nil || s.May(file) }

// New returns a Run that makes safe fixes or, if unsafe is set, all fixes.
func New(unsafe bool) *Run {
	return &Run{
		unsafe: unsafe, files: make(map[string]*file), named: make(map[string]*file), refused: make(map[string]string),
		roots: make(map[string]*os.Root),
	}
}

// Add adds a text that is not a file's, such as standard input, under its name in findings. Write does not write it.
func (r *Run) Add(name string, text []byte) {
	f := &file{name: name, before: text, now: text}
	r.files[keyOf(name)], r.named[name] = f, f
}

func keyOf(name string) string {
	if name == diag.StandardInput {
		return name
	}
	return fspath.Resolve(name)
}

// Text returns the text of a name that was added.
func (r *Run) Text(name string) []byte { return r.named[name].now }

// Texts returns the texts to read instead of files, by their paths.
func (r *Run) Texts() map[string][]byte {
	texts := make(map[string][]byte, len(r.files))
	for path, f := range r.files {
		if path != diag.StandardInput {
			texts[path] = f.now
		}
	}
	return texts
}

// Fix makes the fixes of a Result, and judges the texts again until no fix remains. It returns the last Result. The
// function judge must read Texts instead of files.
func (r *Run) Fix(found *check.Result, in Scope, judge func() (*check.Result, error)) (*check.Result, error) {
	for r.rounds = 0; r.rounds < maxRounds; r.rounds++ {
		// The places of fixes are known only for a text that the Run holds: the file may have changed since.
		if !r.open(found.Diagnostics, in) {
			edits, n := r.choose(found.Diagnostics, in)
			if n == 0 {
				break
			}
			if err := r.edit(edits); err != nil {
				return nil, err
			}
			r.made += n
		}
		var err error
		if found, err = judge(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// fixOf returns the fix of a finding that the Run makes, and nil for none. Fixes are alternatives.
func (r *Run) fixOf(d diag.Diagnostic) *diag.Fix {
	for i, f := range d.Fixes {
		if f.Safe || r.unsafe {
			return &d.Fixes[i]
		}
	}
	return nil
}

// open reads the files of fixes that are not in the Run yet. It returns false if all files are in the Run.
func (r *Run) open(list diag.List, in Scope) (opened bool) {
	for _, d := range list {
		fix := r.fixOf(d)
		if fix == nil {
			continue
		}
		for _, e := range fix.Edits {
			if r.named[e.File] != nil || r.refused[e.File] != "" || !in.may(e.File) {
				continue
			}
			key := keyOf(e.File)
			f := r.files[key]
			if f == nil {
				at, text, err := r.openFile(in.Root, key)
				if err != nil {
					r.refused[e.File] = fspath.Reason(err).Error()
					continue
				}
				f, opened = &file{place: at, name: e.File, before: text, now: text, envoy: in.Envoy}, true
				r.files[key] = f
			}
			r.named[e.File] = f
		}
	}
	return opened
}

// choose returns the edits of all fixes that can be made at the same time, by the file, and the number of fixes.
func (r *Run) choose(list diag.List, in Scope) (edits map[*file][]diag.Edit, n int) {
	edits = make(map[*file][]diag.Edit)
	for _, d := range list {
		fix := r.fixOf(d)
		if fix == nil || slices.ContainsFunc(fix.Edits, func(e diag.Edit) bool {
			f := r.named[e.File]
			return f == nil || !in.may(e.File) || !hasRoom(edits[f], e)
		}) {
			continue
		}
		n++
		for _, e := range fix.Edits {
			f := r.named[e.File]
			edits[f] = insert(edits[f], e)
		}
	}
	return edits, n
}

// edit makes the edits.
func (r *Run) edit(edits map[*file][]diag.Edit) error {
	for f, list := range edits {
		now, err := edit(f.now, list)
		if err != nil {
			return fmt.Errorf("fix %s: %w", f.name, err)
		}
		f.now = now
	}
	return nil
}

// Unsafe returns the number of findings with fixes that the Run does not make because none of the fixes is safe.
func (r *Run) Unsafe(list diag.List, in Scope) (n int) {
	for _, d := range list {
		if len(d.Fixes) > 0 && r.fixOf(d) == nil && in.may(d.Fixes[0].Edits[0].File) {
			n++
		}
	}
	return n
}

// Refused names a file that no fix may change, and the reason.
type Refused struct{ File, Reason string }

// Refused returns the files with fixes that can't be changed, sorted.
func (r *Run) Refused() (list []Refused) {
	for _, name := range slices.Sorted(maps.Keys(r.refused)) {
		list = append(list, Refused{name, r.refused[name]})
	}
	return list
}

// Made returns the number of fixes, and the number of files and other texts that they change.
func (r *Run) Made() (fixes, files int) { return r.made, len(r.changed()) }

// Unfinished reports whether the last Fix reached the limit of rounds.
func (r *Run) Unfinished() bool { return r.rounds == maxRounds }

// changed returns the files with another text than before, sorted by their paths.
func (r *Run) changed() (list []*file) {
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		if f := r.files[path]; string(f.before) != string(f.now) {
			list = append(list, f)
		}
	}
	return list
}
