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
	// Codes are the codes of the findings, with their documentation.
	Codes []diag.Code
	// Root is the folder to which paths are relative.
	Root *Root
	// ExitStatus is the exit status of the program.
	ExitStatus int
	// Findings are the findings about all trees, sorted.
	Findings diag.List
	// Trees are the judged source trees and bootstraps.
	Trees []Tree
}

// Tree is a judged source tree or bootstrap.
type Tree struct {
	Path     string
	Findings diag.List
	// Resources returns the judged resources; nil means that there are none. Most formats do not call it.
	Resources func() []diag.Resource
	// WarningsAsErrors means that a warning refuses the tree like an error.
	WarningsAsErrors bool
}

// Format is a format of reports.
type Format struct {
	Name  string
	Write func(io.Writer, *Report) error
}

// Formats lists all formats.
var Formats = []Format{{"sarif", writeSARIF}, {"junit", writeJUnit}, {"github", writeGitHub}, {"gitlab", writeGitLab}}

// words returns a finding with the texts for a report: without secrets, and without characters that a terminal
// would obey.
func words(d diag.Diagnostic) diag.Diagnostic {
	d = d.Shown()
	d.Code, d.Message, d.Help, d.Path, d.Resource = diag.Printable(d.Code), diag.Printable(d.Message), diag.Printable(d.Help),
		diag.Printable(d.Path), name(d.Resource)
	var related []diag.Related // SARIF does not allow repetitions
	for _, r := range d.Related {
		if r.Message = diag.Printable(r.Message); !slices.Contains(related, r) {
			related = append(related, r)
		}
	}
	d.Related = related
	return d
}

// name returns a resource with a name that can be printed, without secrets.
func name(r diag.Resource) diag.Resource {
	return diag.Resource{Type: diag.Printable(r.Type), Name: diag.Printable(diag.Hide(r.Name))}
}

// text returns the texts of a finding, one on each line: the message, the related places, and the help. where comes
// before the message: it is the place of the finding if the format has no field for the place, or else "".
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

// place returns the beginning of a line about a position. The path is relative to the root.
func (r *Root) place(p diag.Position) string {
	p.File, _ = r.Path(p.File)
	if p == (diag.Position{}) {
		return ""
	}
	return diag.Printable(p.String()) + ": "
}

// placeOutside returns the same as place for a file that is not below the root, because the format has no field for
// its place. For other files it returns "".
func (r *Root) placeOutside(p diag.Position) string {
	if _, inside := r.Path(p.File); inside {
		return ""
	}
	return r.place(p)
}
