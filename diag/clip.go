package diag

import "strings"

// How much of a text from outside is shown: of a name or a version, and of a sentence.
const (
	MaxWord = 1 << 10
	MaxText = 4 << 10
)

// ClipLine makes a text from outside one line, and clips it. The line is a copy: who keeps the line does not keep the
// text.
func ClipLine(text string, most int) string {
	return strings.Clone(Clip(strings.Join(strings.Fields(text), " "), most))
}

// Clip makes a text from outside fit to be shown: it has at most so many bytes, and no control
// characters.
func Clip(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return Printable(text)
}
