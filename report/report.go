package report

import (
	"io"
	"slices"

	"xdspub/diag"
)

// Report is what is reported of a run.
type Report struct {
	// Version is that of the program.
	Version string
	// Codes document what the codes of findings mean.
	Codes []diag.Code
	// Root is where paths begin.
	Root *Root
	// ExitStatus is that of the program.
	ExitStatus int
	// Findings are those of all trees, sorted.
	Findings diag.List
	// Trees are the source trees and bootstraps that were judged.
	Trees []Tree
}

// Tree is one of the things that were judged: a source tree, or a bootstrap.
type Tree struct {
	Path      string
	Resources []diag.Resource
	Findings  diag.List
	// WarningsAsErrors says that warnings refuse the tree like errors.
	WarningsAsErrors bool
}

// Format is a way to write a Report.
type Format struct {
	Name  string
	Write func(io.Writer, *Report) error
}

// Formats are all of them.
var Formats = []Format{{"sarif", writeSARIF}, {"junit", writeJUnit}, {"github", writeGitHub}, {"gitlab", writeGitLab}}

// words are the texts of a finding as a report has them: without secrets, and with no character
// that a terminal would obey.
func words(d diag.Diagnostic) diag.Diagnostic {
	d = d.Shown()
	d.Code, d.Message, d.Help, d.Path, d.Resource = diag.Printable(d.Code), diag.Printable(d.Message), diag.Printable(d.Help), diag.Printable(d.Path), name(d.Resource)
	var related []diag.Related // each once: SARIF says so
	for _, r := range d.Related {
		if r.Message = diag.Printable(r.Message); !slices.Contains(related, r) {
			related = append(related, r)
		}
	}
	d.Related = related
	return d
}

// name returns a resource with a printable name.
func name(r diag.Resource) diag.Resource {
	return diag.Resource{Type: diag.Printable(r.Type), Name: diag.Printable(diag.Hide(r.Name))}
}

// text is all that a finding says in words, a line each: what is wrong, behind where it stands
// as far as nothing else says that, then related places, and what would be right.
func (r *Report) text(where string, d diag.Diagnostic) string {
	s := where + d.Message
	for _, other := range d.Related {
		s += "\n" + r.Root.place(other.Position) + other.Message
	}
	if d.Help != "" {
		s += "\nhelp: " + d.Help
	}
	return s
}

// place returns how a line about a position begins, with its path from the root.
func (r *Root) place(p diag.Position) string {
	p.File, _ = r.Path(p.File)
	if p == (diag.Position{}) {
		return ""
	}
	return diag.Printable(p.String()) + ": "
}

// placeOutside is place for what is not below the root, and so has no place in a repository.
func (r *Root) placeOutside(p diag.Position) string {
	if _, inside := r.Path(p.File); inside {
		return ""
	}
	return r.place(p)
}
