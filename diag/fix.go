package diag

import (
	"fmt"
	"slices"
)

// Fix is a change of the source that would end a finding.
type Fix struct {
	// Title describes the change in a few words.
	Title string `json:"title"`
	// Edits are made at the same time: each Range is a range of the original text.
	Edits []Edit `json:"edits"`
}

// Edit replaces a Range of the source by a text.
type Edit struct {
	Range
	Text string `json:"text"`
}

// reveals reports whether a fix contains a secret.
func (f Fix) reveals() bool {
	return Hide(f.Title) != f.Title || slices.ContainsFunc(f.Edits, func(e Edit) bool { return Hide(e.Text) != e.Text })
}

// Correction is a word of the source and the word that was likely meant. The zero Correction stands for no
// correction.
type Correction struct{ Wrong, Right string }

// Question returns the help "did you mean" for the correction.
func (c Correction) Question() string { return fmt.Sprintf("did you mean %q?", c.Right) }

// Correct adds a Fix that makes the correction c by the edit e.
func (d *Diagnostic) Correct(c Correction, e Edit) {
	d.Fixes = append(d.Fixes, Fix{Title: "write " + c.Right, Edits: []Edit{e}})
}
