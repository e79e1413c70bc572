package diag

import "strings"

// The largest sizes, in bytes, of texts from outside that are shown: MaxWord of a name or a version, MaxText of a
// sentence.
const (
	MaxWord = 1 << 10
	MaxText = 4 << 10
)

// ClipLine returns a text from outside as one line, clipped to most bytes. The line is a copy, so it does not keep
// the text in memory.
func ClipLine(text string, most int) string {
	return strings.Clone(Clip(strings.Join(strings.Fields(text), " "), most))
}

// Clip returns a text from outside that can be shown: cut to most bytes, with … at the cut, and without control
// characters.
func Clip(text string, most int) string {
	return Printable(Cut(text, most))
}

// Cut returns a text cut to most bytes, with … at the cut. Cut doesn't split a character, and keeps line breaks.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
