// Package report writes findings for other programs. Package report tells which findings of two runs are the
// same, and gives places relative to the root of a repository. Package report knows nothing but findings.
//
//	root, err := report.NewRoot("/srv/config")
//	fingerprints := report.Fingerprints(findings, root)
package report

import (
	"path/filepath"

	"xdspub/diag"
	"xdspub/internal/fspath"
)

// Root is the folder that paths of a report are relative to. Not for concurrent use.
type Root struct {
	dir, resolved string // absolute; resolved has no symbolic links
	known         map[string]place
}

// place is where a file stands.
type place struct {
	path   string
	inside bool
}

// NewRoot returns the Root at a folder. Relative paths begin at the current directory: an error
// says that this one is gone.
func NewRoot(dir string) (*Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Root{dir: dir, resolved: fspath.Resolve(dir), known: make(map[string]place)}, nil
}

// Path returns the path of a file relative to the root, with slashes, and whether the file is below the root.
// Path returns any other file, and standard input, unchanged.
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
	// One folder may have two names, as /tmp does on a Mac.
	abs = filepath.Join(fspath.Resolve(filepath.Dir(abs)), filepath.Base(abs))
	if fspath.Within(abs, r.resolved) {
		return below(r.resolved, abs)
	}
	return outside
}

// below returns where a file stands that is below a folder.
func below(dir, file string) place {
	path, err := filepath.Rel(dir, file)
	return place{filepath.ToSlash(path), err == nil}
}
