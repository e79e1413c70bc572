package graph

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"xdspub/diag"
)

// Style is the style sheet of a Drawing, for light and dark screens. WriteSVG writes the Style into an image. A page
// with an inline element needs a style sheet with the Style.
const Style = `.xdspub-graph{font-family:ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;font-size:12px;background:#fff}
.xdspub-graph text{fill:#1c2430}
.xdspub-graph .detail,.xdspub-graph .head,.xdspub-graph .note{font-size:10px;fill:#5a6577}
.xdspub-graph .badge{font-weight:bold;text-anchor:end}
.xdspub-graph rect{fill:#f6f8fa;stroke:#8a94a6}
.xdspub-graph .changed rect{fill:#dbeafe}
.xdspub-graph .added rect{fill:#d9f2e0}
.xdspub-graph .removed rect{fill:#e9e4ec}
.xdspub-graph .removed .label{text-decoration:line-through}
.xdspub-graph .absent rect{fill:none;stroke-dasharray:4 3}
.xdspub-graph .warning rect{stroke:#b26a00}
.xdspub-graph .error rect{stroke:#c62828;stroke-width:2}
.xdspub-graph .focus rect{stroke-width:3}
.xdspub-graph .error .badge{fill:#c62828}
.xdspub-graph .edge{fill:none;stroke:#8a94a6}
.xdspub-graph .edge.absent{stroke-dasharray:4 3}
.xdspub-graph .edge.added,.xdspub-graph .edge.changed{stroke:#1a7f37;stroke-width:2}
.xdspub-graph .edge.warning{stroke:#b26a00;stroke-width:2}
.xdspub-graph .edge.error{stroke:#c62828;stroke-width:2}
@media (prefers-color-scheme:dark){
.xdspub-graph{background:#0f141b}
.xdspub-graph text{fill:#e6eaf0}
.xdspub-graph .detail,.xdspub-graph .head,.xdspub-graph .note{fill:#a3adbd}
.xdspub-graph rect{fill:#1b222c;stroke:#6c7789}
.xdspub-graph .changed rect{fill:#173154}
.xdspub-graph .added rect{fill:#143a23}
.xdspub-graph .removed rect{fill:#33293a}
.xdspub-graph .absent rect{fill:none}
.xdspub-graph .edge{stroke:#6c7789}
.xdspub-graph .edge.added,.xdspub-graph .edge.changed{stroke:#56d364}
.xdspub-graph .warning rect,.xdspub-graph .edge.warning{stroke:#f0b050}
.xdspub-graph .error rect,.xdspub-graph .edge.error{stroke:#ff7b72}
.xdspub-graph .error .badge{fill:#ff7b72}
}
`

// SVGOptions are the options of WriteSVG.
type SVGOptions struct {
	// Inline writes an svg element for a page in HTML that has the Style, in place of an image.
	Inline bool
	// Link returns the address behind a Box, or "" for none. Link may be nil.
	Link func(Box) string
}

// WriteSVG writes an SVG image that needs no other file.
func (d *Drawing) WriteSVG(w io.Writer, o SVGOptions) error {
	b := bufio.NewWriter(w)
	namespace := ` xmlns="http://www.w3.org/2000/svg"`
	if o.Inline {
		namespace = ""
	}
	fmt.Fprintf(b, "<svg%s class=\"xdspub-graph\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"group\" "+
		"aria-label=\"Envoy resources and their references\">\n", namespace, d.Width, d.Height, d.Width, d.Height)
	if !o.Inline {
		fmt.Fprintf(b, "<style>\n%s</style>\n", Style)
	}
	d.content(b, o.Link)
	return b.Flush()
}

// text returns a text from outside as text of XML and HTML.
func text(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = html.EscapeString(diag.Printable(line))
	}
	return strings.Join(lines, "\n")
}

func (d *Drawing) content(b *bufio.Writer, link func(Box) string) {
	for _, c := range d.Columns {
		fmt.Fprintf(b, "<text class=\"head\" x=\"%d\" y=\"%d\">%s</text>\n", c.X, margin+6, text(c.Title))
	}
	for _, e := range d.Edges {
		class := classes("edge", string(e.Fault), string(e.Change), absentClass(e.Absent))
		if e.Title == "" {
			fmt.Fprintf(b, "<path class=\"%s\" d=\"%s\"/>\n", class, e.Curve)
		} else {
			fmt.Fprintf(b, "<path class=\"%s\" d=\"%s\"><title>%s</title></path>\n", class, e.Curve, text(e.Title))
		}
	}
	for _, n := range d.Nodes {
		d.box(b, n, link)
	}
	y := d.Height - margin - (len(d.Notes)-1)*noteHeight
	for _, note := range d.Notes {
		fmt.Fprintf(b, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n", margin, y, text(note))
		y += noteHeight
	}
	fmt.Fprint(b, "</svg>\n")
}

func absentClass(absent bool) string {
	if absent {
		return "absent"
	}
	return ""
}

func classes(names ...string) string {
	var list []string
	for _, name := range names {
		if name != "" {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// box writes a Box. The inner svg element cuts off a text that a font makes wider than the Box.
func (d *Drawing) box(b *bufio.Writer, n Box, link func(Box) string) {
	href := ""
	if link != nil {
		href = link(n)
	}
	if href != "" {
		fmt.Fprintf(b, "<a href=\"%s\">", html.EscapeString(href))
	}
	focus := ""
	if n.Focus {
		focus = "focus"
	}
	class := classes("node", string(n.Kind), string(n.Fault), string(n.Change), absentClass(n.Absence != Present), focus)
	fmt.Fprintf(b, "<svg class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>%s</title>",
		class, n.X, n.Y, n.Width, n.Height, text(n.Title))
	if n.Count > 0 { // a stack
		fmt.Fprintf(b, "<rect x=\"4.5\" y=\"1.5\" width=\"%d\" height=\"%d\" rx=\"4\"/><rect x=\"1.5\" y=\"4.5\" width=\"%d\" height=\"%d\" rx=\"4\"/>",
			n.Width-6, n.Height-6, n.Width-6, n.Height-6)
	} else {
		fmt.Fprintf(b, "<rect x=\"1.5\" y=\"1.5\" width=\"%d\" height=\"%d\" rx=\"4\"/>", n.Width-3, n.Height-3)
	}
	y := 17
	if n.Detail == "" {
		y = 24
	}
	fmt.Fprintf(b, "<text class=\"label\" x=\"%d\" y=\"%d\">%s</text>", textIndent, y, text(n.Label))
	if n.Detail != "" {
		fmt.Fprintf(b, "<text class=\"detail\" x=\"%d\" y=\"31\">%s</text>", textIndent, text(n.Detail))
	}
	if badge := marksOf(n.Fault, n.Change); badge != "" {
		fmt.Fprintf(b, "<text class=\"badge\" x=\"%d\" y=\"%d\">%s</text>", n.Width-8, y, badge)
	}
	fmt.Fprint(b, "</svg>")
	if href != "" {
		fmt.Fprint(b, "</a>")
	}
	fmt.Fprintln(b)
}
