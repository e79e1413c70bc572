package diff

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"xdspub/diag"
)

// TextOptions are the options of WriteText.
type TextOptions struct {
	// Was and Is name the two Snapshots.
	Was, Is string
	// Color marks differences with ANSI colours.
	Color bool
	// Width is the width of a line if both values of a field stand side by side; 0 writes one below the other.
	Width int
	// Most bounds the effects of a kind, and the fields of a resource; 0 means no limit.
	Most int
	// Note is a remark about the change, for WriteMarkdown; empty for none.
	Note string
}

// marks are the characters of the kinds of difference.
var marks = map[Change]string{Added: "+", Removed: "-", Changed: "~", Moved: ">"}

// colors are the ANSI colours of marks.
var colors = map[string]string{"+": "32", "-": "31", "~": "33", ">": "36", "!": "31"}

// textWriter writes a Diff as text.
type textWriter struct {
	b strings.Builder
	o TextOptions
}

// WriteText writes the effects, then the resources with their fields, then the summary.
func (d *Diff) WriteText(w io.Writer, o TextOptions) error {
	t := &textWriter{o: o}
	if o.Was != "" {
		t.b.WriteString(t.colored("-", "--- "+diag.Printable(o.Was)) + "\n" + t.colored("+", "+++ "+diag.Printable(o.Is)) + "\n")
	}
	t.effects(d.Effects)
	for _, r := range d.Resources {
		t.resource(r)
	}
	if d.Omitted > 0 {
		fmt.Fprintf(&t.b, "… and %s\n", diag.Count(d.Omitted, "more field"))
	}
	fmt.Fprintln(&t.b, d.Summary())
	_, err := io.WriteString(w, t.b.String())
	return err
}

// WriteEffects writes the effects as WriteText does.
func (d *Diff) WriteEffects(w io.Writer, o TextOptions) error {
	t := &textWriter{o: o}
	t.effects(d.Effects)
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textWriter) effects(list []Effect) {
	if len(list) == 0 {
		return
	}
	t.b.WriteString("effects on a running Envoy:\n")
	n := 0
	for i, e := range list {
		if i > 0 && list[i-1].Kind != e.Kind {
			n = 0
		}
		if n++; t.o.Most > 0 && n > t.o.Most {
			if i+1 == len(list) || list[i+1].Kind != e.Kind {
				fmt.Fprintf(&t.b, "    … and %s of the kind %s\n", diag.Count(n-t.o.Most, "more effect"), e.Kind)
			}
			continue
		}
		mark := " "
		if e.Kind.Disturbs() {
			mark = "!"
		}
		t.b.WriteString("  " + t.colored(mark, mark+" "+e.Text) + "\n")
	}
}

// resource writes a resource with its fields.
func (t *textWriter) resource(r Resource) {
	mark := marks[r.Change]
	t.b.WriteString(t.colored(mark, mark+" "+clip(r.key.String())) + "\n")
	fields := r.Fields
	if t.o.Most > 0 {
		fields = fields[:min(t.o.Most, len(fields))]
	}
	for _, f := range fields {
		t.field(f)
	}
	if n := len(r.Fields) - len(fields); n > 0 {
		fmt.Fprintf(&t.b, "    … and %s\n", diag.Count(n, "more field"))
	}
}

func (t *textWriter) field(f Field) {
	mark := marks[f.Change]
	if t.o.Width > 0 && f.Change != Moved {
		t.beside(f)
		return
	}
	t.b.WriteString("    " + t.colored(mark, mark+" "+f.String()) + "\n")
}

// String returns the field and its values in one line.
func (f Field) String() string {
	at := f.Label
	if at == "" {
		at = string(f.Path)
	}
	was, is := f.values()
	switch f.Change {
	case Moved:
		return fmt.Sprintf("%s: moved from %s to %s", at, f.Was, f.Is)
	case Added:
		if f.Default != "" {
			return fmt.Sprintf("%s: %s → %s", at, was, is)
		}
		return at + ": " + is
	case Removed:
		if f.Default != "" {
			return fmt.Sprintf("%s: %s → %s", at, was, is)
		}
		return at + ": " + was
	}
	return fmt.Sprintf("%s: %s → %s", at, was, is)
}

// values returns both values, with the default of an absent one.
func (f Field) values() (was, is string) {
	if was, is = f.Was, f.Is; f.Default == "" {
		return was, is
	}
	if was == "" {
		was = "unset (" + f.Default + ")"
	} else if was == f.Default {
		was += " (the default)"
	}
	if is == "" {
		is = "unset (" + f.Default + ")"
	} else if is == f.Default {
		is += " (the default)"
	}
	return was, is
}

// beside writes the old value of a field on the left, and the new value on the right.
func (t *textWriter) beside(f Field) {
	at := f.Label
	if at == "" {
		at = string(f.Path)
	}
	was, is := f.values()
	half := max(20, (t.o.Width-7)/2)
	t.b.WriteString("    " + at + "\n")
	left, right := wrapped(was, half), wrapped(is, half)
	for i := range max(len(left), len(right)) {
		a, b := "", ""
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		pad := strings.Repeat(" ", half-utf8.RuneCountInString(a))
		t.b.WriteString("    " + t.colored("-", a) + pad + " | " + t.colored("+", b) + "\n")
	}
}

// wrapped returns a text in lines of a width.
func wrapped(text string, width int) (lines []string) {
	for r := []rune(text); len(r) > 0; {
		n := min(width, len(r))
		lines, r = append(lines, string(r[:n])), r[n:]
	}
	return lines
}

func (t *textWriter) colored(mark, text string) string {
	color := colors[mark]
	if !t.o.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Summary returns the numbers of resources and effects in one line.
func (d *Diff) Summary() string {
	if d.Empty() {
		return "no difference"
	}
	parts := []string{
		fmt.Sprintf("%d added, %d changed, %d removed", d.Count(Added), d.Count(Changed), d.Count(Removed)),
	}
	if effects := d.Counts().String(); effects != "" {
		parts = append(parts, effects)
	}
	return strings.Join(parts, "; ")
}
