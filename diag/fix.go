package diag

import (
	"fmt"
	"slices"
)

// Fix is a change of the source that would end a finding.
type Fix struct {
	// Title describes the change in a few words.
	Title string `json:"title"`
	// Safe means that nobody needs to read the change. Either Envoy reads the same before and after the change, or
	// Envoy refuses the text as it stands and the text can only be a misspelling of the new text.
	Safe bool `json:"safe"`
	// Edits are made at the same time: each Range is a range of the original text. There is at least one Edit.
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
type Correction struct {
	Wrong, Right string
	// Sure means that Wrong can only be a misspelling of Right.
	Sure bool
}

// Question returns the help "did you mean" for the correction.
func (c Correction) Question() string { return fmt.Sprintf("did you mean %q?", c.Right) }

// Correct adds a Fix that makes the correction c by the edit e. The Fix is safe if c is sure and the finding is an
// error. Text with a warning has a meaning already, which the correction would change.
func (d *Diagnostic) Correct(c Correction, e Edit) {
	d.Fixes = append(d.Fixes, Fix{Title: "write " + c.Right, Safe: c.Sure && d.Severity == Error, Edits: []Edit{e}})
}

// WithoutSafe returns the finding with no safe Fix.
func (d Diagnostic) WithoutSafe() Diagnostic {
	d.Fixes = slices.Clone(d.Fixes)
	for i := range d.Fixes {
		d.Fixes[i].Safe = false
	}
	return d
}
