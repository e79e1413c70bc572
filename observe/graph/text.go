package graph

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"xdspub/diag"
)

// mostLabel is the number of characters of a label in DOT and Mermaid.
const mostLabel = 40

// lines returns the label of a Node in a picture without columns and badges.
func (n *Node) lines() []string {
	first := fit(n.Label, 1, mostLabel*charWidth)
	if marks := n.badges(); marks != "" {
		first = marks + " " + first
	}
	second := kinds[n.Kind.column()].noun
	if n.Detail != "" {
		second += ", " + fit(n.Detail, 1, mostLabel*charWidth)
	}
	if n.Count > 0 {
		return append([]string{first}, fit(n.Detail, 1, mostLabel*charWidth))
	}
	return []string{first, second}
}

// colors are the colours of lines, by Fault.
var colors = map[Fault]string{Error: "#c62828", Warning: "#b26a00", NoFault: "#6c7789"}

// fills are the colours of boxes, by Change.
var fills = map[Change]string{Unchanged: "#f6f8fa", Added: "#d9f2e0", Changed: "#dbeafe", Removed: "#e9e4ec"}

// WriteDOT writes the Graph in the language of Graphviz.
func (g *Graph) WriteDOT(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph xdspub {\n\trankdir=LR\n\tgraph [fontname=monospace, fontsize=10]\n"+
		"\tnode [shape=box, style=\"filled,rounded\", color=%q, fillcolor=%q, fontname=monospace, fontsize=10]\n\tedge [color=%q]\n",
		colors[NoFault], fills[Unchanged], colors[NoFault])
	if notes := g.notes(); len(notes) > 0 {
		fmt.Fprintf(b, "\tlabel=%s\n", dotString(notes...))
	}
	names := make(map[*Node]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[n] = "n" + strconv.Itoa(i)
		fmt.Fprintf(b, "\t%s [label=%s, tooltip=%s%s]\n", names[n], dotString(n.lines()...), dotString(strings.Split(n.title(), "\n")...), n.dotStyle())
	}
	for _, e := range g.Edges {
		var attributes []string
		if e.Fault != NoFault {
			attributes = append(attributes, fmt.Sprintf("color=%q, penwidth=2", colors[e.Fault]))
		} else if e.Change != Unchanged {
			attributes = append(attributes, `color="#1a7f37", penwidth=2`)
		}
		if e.To.Absence != Present {
			attributes = append(attributes, "style=dashed")
		}
		if len(attributes) == 0 {
			fmt.Fprintf(b, "\t%s -> %s\n", names[e.From], names[e.To])
		} else {
			fmt.Fprintf(b, "\t%s -> %s [%s]\n", names[e.From], names[e.To], strings.Join(attributes, ", "))
		}
	}
	fmt.Fprint(b, "}\n")
	return b.Flush()
}

// dotStyle returns the attributes by which a Node differs from most Nodes.
func (n *Node) dotStyle() string {
	style := ""
	if n.Absence != Present {
		style += `, style="dashed,rounded"`
	}
	if n.Fault != NoFault {
		style += fmt.Sprintf(", color=%q", colors[n.Fault])
	}
	if n.Fault == Error || n.focus {
		style += ", penwidth=2"
	}
	if n.Change != Unchanged {
		style += fmt.Sprintf(", fillcolor=%q", fills[n.Change])
	}
	if n.Count > 0 {
		style += ", peripheries=2"
	}
	return style
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// dotString returns lines as a string of DOT. Graphviz reads escapes and HTML entities in a string.
func dotString(lines ...string) string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = dotEscapes.Replace(diag.Printable(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// The limits of Mermaid. Mermaid refuses a larger text.
const (
	MermaidEdges = 500
	MermaidSize  = 50_000 // characters
)

// WriteMermaid writes the Graph as a flowchart of Mermaid.
func (g *Graph) WriteMermaid(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "flowchart LR\n")
	names := make(map[*Node]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[n] = "n" + strconv.Itoa(i)
		open, end := "[", "]"
		if n.Count > 0 {
			open, end = "[[", "]]"
		}
		class := mermaidClass(n)
		if class != "" {
			class = ":::" + class
		}
		fmt.Fprintf(b, "  %s%s%s%s%s\n", names[n], open, mermaidString(n.lines()...), end, class)
	}
	styles := make(map[string][]string)
	var order []string
	for i, e := range g.Edges {
		arrow := "-->"
		if e.To.Absence != Present {
			arrow = "-.->"
		}
		fmt.Fprintf(b, "  %s %s %s\n", names[e.From], arrow, names[e.To])
		color := ""
		if e.Fault != NoFault {
			color = colors[e.Fault]
		} else if e.Change != Unchanged {
			color = "#1a7f37"
		}
		if color != "" {
			if styles[color] == nil {
				order = append(order, color)
			}
			styles[color] = append(styles[color], strconv.Itoa(i))
		}
	}
	for _, color := range order {
		fmt.Fprintf(b, "  linkStyle %s stroke:%s,stroke-width:2px\n", strings.Join(styles[color], ","), color)
	}
	used := make(map[string]bool)
	for _, n := range g.Nodes {
		if class := mermaidClass(n); class != "" && !used[class] {
			used[class] = true
			fmt.Fprintf(b, "  classDef %s %s\n", class, mermaidStyle(n))
		}
	}
	if notes := g.notes(); len(notes) > 0 {
		fmt.Fprintf(b, "  notes[%s]:::notes\n  classDef notes fill:none,stroke:none\n", mermaidString(notes...))
	}
	return b.Flush()
}

// mermaidClass returns the name of the class of a Node; empty for a Node without marks.
func mermaidClass(n *Node) string {
	var names []string
	for _, name := range []string{string(n.Fault), string(n.Change), absentClass(n.Absence != Present)} {
		if name != "" {
			names = append(names, name)
		}
	}
	if n.focus {
		names = append(names, "focus")
	}
	return strings.Join(names, "_")
}

func mermaidStyle(n *Node) string {
	var style []string
	if n.Fault != NoFault {
		style = append(style, "stroke:"+colors[n.Fault])
	}
	if n.Fault == Error || n.focus {
		style = append(style, "stroke-width:3px")
	}
	if n.Change != Unchanged {
		style = append(style, "fill:"+fills[n.Change], "color:#1c2430")
	}
	if n.Absence != Present {
		style = append(style, "stroke-dasharray:4 3")
	}
	return strings.Join(style, ",")
}

// mermaidString returns lines as a string of Mermaid. Mermaid reads Markdown and HTML in a string, so that every
// character with a meaning is written by its number.
func mermaidString(lines ...string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, line := range lines {
		if i > 0 {
			b.WriteString("<br>")
		}
		afterLetter := false
		for _, r := range diag.Printable(line) {
			isLetter := unicode.IsLetter(r)
			if isLetter || unicode.IsDigit(r) || r == ' ' || afterLetter && strings.ContainsRune("-./:,", r) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, "#%d;", r)
			}
			afterLetter = isLetter
		}
	}
	b.WriteByte('"')
	return b.String()
}
