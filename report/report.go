package report

import (
	"io"
	"slices"

	"xdspub/diag"
)

// Report is the input of a report about a run.
type Report struct {
	// Version is the program's version.
	Version string
	// Codes document the codes of findings.
	Codes []diag.Code
	// Root is where paths begin.
	Root *Root
	// ExitStatus is that of the program.
	ExitStatus int
	// Findings are those of all trees, sorted.
	Findings diag.List
	// Trees are the judged source trees and bootstraps.
	Trees []Tree
}

// Tree is a judged source tree or bootstrap.
type Tree struct {
	Path     string
	Findings diag.List
	// Resources returns what was judged; nil for nothing. Few formats ask.
	Resources func() []diag.Resource
	// WarningsAsErrors says that warnings refuse the tree like errors.
	WarningsAsErrors bool
}

// Format is a way to write a Report.
type Format struct {
	Name  string
	Write func(io.Writer, *Report) error
}

// Formats lists all formats.
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

// text returns the words of a finding, a line each: the message, behind the place unless the report has the
// place elsewhere, then related places, and the remedy.
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
