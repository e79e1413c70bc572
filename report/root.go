// Package report writes findings in formats of other programs. It also computes fingerprints, which identify the
// same finding in two runs, and paths relative to the root of a repository.
//
//	root, err := report.NewRoot("/srv/config")
//	fingerprints := report.Fingerprints(findings, root)
package report

import (
	"path/filepath"

	"xdspub/diag"
	"xdspub/internal/fspath"
)

// Root is the folder to which the paths of a report are relative. A Root is not for concurrent use.
type Root struct {
	dir, resolved string // absolute; in resolved, links are resolved
	known         map[string]place
}

// place is the result of Path.
type place struct {
	path   string
	inside bool
}

// NewRoot returns the Root for a folder. A relative dir begins at the current folder. NewRoot returns an error if
// the current folder no longer exists.
func NewRoot(dir string) (*Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Root{dir: dir, resolved: fspath.Resolve(dir), known: make(map[string]place)}, nil
}

// Path returns the path of a file relative to the root, with slashes. inside is false if the file is not below the
// root, or if file is standard input; Path then returns file unchanged.
func (r *Root) Path(file string) (path string, inside bool) {
	p, known := r.known[file]
	if !known {
		p = r.find(file)
		r.known[file] = p
	}
	return p.path, p.inside
}

func (r *Root) find(file string) place {
	outside := place{path: filepath.ToSlash(file)}
	abs, err := filepath.Abs(file)
	if file == "" || file == diag.StandardInput || err != nil {
		return outside
	}
	if fspath.Within(abs, r.dir) {
		return below(r.dir, abs)
	}
	// A folder may have two names by a link, as /tmp has on a Mac.
	abs = filepath.Join(fspath.Resolve(filepath.Dir(abs)), filepath.Base(abs))
	if fspath.Within(abs, r.resolved) {
		return below(r.resolved, abs)
	}
	return outside
}

// below returns the place of a file that is below dir.
func below(dir, file string) place {
	path, err := filepath.Rel(dir, file)
	return place{filepath.ToSlash(path), err == nil}
}
