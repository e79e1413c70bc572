package diag

import (
	"fmt"
	"slices"
)

// Fix is a change of the source that would end a finding.
type Fix struct {
	// Title says in a few words what is changed.
	Title string `json:"title"`
	// Edits apply at once: each Range is a range of the original text.
	Edits []Edit `json:"edits"`
}

// Edit replaces a Range of the source by a text.
type Edit struct {
	Range
	Text string `json:"text"`
}

// reveals reports whether a fix would print a secret.
func (f Fix) reveals() bool {
	return Hide(f.Title) != f.Title || slices.ContainsFunc(f.Edits, func(e Edit) bool { return Hide(e.Text) != e.Text })
}

// Correction is a word of the source, with the word that was likely meant. The zero Correction is none.
type Correction struct{ Wrong, Right string }

// Question returns the question whether the right word was meant, for the help of a finding.
func (c Correction) Question() string { return fmt.Sprintf("did you mean %q?", c.Right) }

// Correct adds the Fix that carries out c by one edit.
func (d *Diagnostic) Correct(c Correction, e Edit) {
	d.Fixes = append(d.Fixes, Fix{Title: "write " + c.Right, Edits: []Edit{e}})
}
