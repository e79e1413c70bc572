package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

const (
	betweenRows = 54
	lineOf      = 15 // the height of a line of text
	margin      = 12
)

// head opens an SVG, with the place of its view box.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d %d %.0f %.0f" font-family="ui-sans-serif, Helvetica, Arial, sans-serif" role="img">
<title>Which package imports which</title>
<style>
.box { fill: #f6f8fa; stroke: #57606a }
.name { fill: #1f2328; font-weight: 600; font-size: 13px }
.in { fill: #57606a; font-size: 11px }
.arrow { fill: none; stroke: #8c959f; stroke-width: 1.3 }
.head { fill: #8c959f }
@media (prefers-color-scheme: dark) {
.box { fill: #151b23; stroke: #9198a1 }
.name { fill: #f0f6fc }
.in { fill: #9198a1 }
.arrow { stroke: #656c76 }
.head { fill: #656c76 }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path class="head" d="M0 1 8 4 0 7z"/></marker></defs>
`

// picture draws a graph as an SVG, for light and dark pages.
func picture(g graph) []byte {
	l := layOut(g, boxWidth)
	var p drawing
	width, height := p.measure(l)
	fmt.Fprintf(&p, head, -margin, -margin, width+2*margin, height+2*margin)
	for _, draw := range []func(*node){p.arrows, p.box} {
		for _, row := range l {
			for _, n := range row {
				if n.name != "" {
					draw(n)
				}
			}
		}
	}
	p.WriteString("</svg>\n")
	return p.Bytes()
}

// drawing is the text of an SVG, and where its rows begin and how high they are.
type drawing struct {
	bytes.Buffer
	tops, heights []float64
}

// measure sets where the rows stand, and moves all nodes so that the picture begins at 0.
func (p *drawing) measure(l layout) (width, height float64) {
	left, right := math.Inf(1), math.Inf(-1)
	for _, row := range l {
		high := 0.0
		for _, n := range row {
			left, right = min(left, n.x-n.width/2), max(right, n.x+n.width/2)
			high = max(high, boxHeight(n.name))
		}
		p.tops, p.heights = append(p.tops, height), append(p.heights, high)
		height += high + betweenRows
	}
	for _, row := range l {
		for _, n := range row {
			n.x = math.Round(n.x - left)
		}
	}
	return right - left, height - betweenRows
}

// labels returns the lines of a box: the folder that it stands in, if any, and the names.
func labels(name string) (dir string, names []string) {
	for one := range strings.SplitSeq(name, "\n") {
		in, base := split(one)
		dir, names = in, append(names, base)
	}
	return dir, names
}

func boxWidth(name string) float64 {
	dir, names := labels(name)
	most := 0.0
	for _, n := range names {
		most = max(most, 7.6*float64(len(n)))
	}
	return math.Round(max(most, 5.8*float64(len(dir)), 40)) + 18
}

func boxHeight(name string) float64 {
	dir, names := labels(name)
	lines := len(names)
	if dir != "" {
		lines++
	}
	return float64(lines*lineOf) + 12
}

func (p *drawing) box(n *node) {
	dir, names := labels(n.name)
	fmt.Fprintf(p, `<rect class="box" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="6"/>`+"\n", math.Round(n.x-n.width/2), p.tops[n.row], n.width, boxHeight(n.name))
	y := p.tops[n.row] + 5
	line := func(class, text string) {
		y += lineOf
		fmt.Fprintf(p, `<text class="%s" x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n", class, n.x, y-2, text)
	}
	if dir != "" {
		line("in", dir)
	}
	for _, name := range names {
		line("name", name)
	}
}

// arrows draws the arrows that begin at a box, each through the nodes where it passes rows.
func (p *drawing) arrows(n *node) {
	for _, to := range n.below {
		x, y := n.x, p.tops[n.row]+boxHeight(n.name)
		fmt.Fprintf(p, `<path class="arrow" marker-end="url(#head)" d="M%.0f %.0f`, x, y)
		curve := func(toX, toY float64) {
			middle := (y + toY) / 2
			fmt.Fprintf(p, "C%.0f %.0f %.0f %.0f %.0f %.0f", x, middle, toX, middle, toX, toY)
			x, y = toX, toY
		}
		for to.name == "" {
			curve(to.x, p.tops[to.row])
			y = p.tops[to.row] + p.heights[to.row]
			fmt.Fprintf(p, "V%.0f", y)
			to = to.below[0]
		}
		curve(to.x, p.tops[to.row]-1)
		p.WriteString("\"/>\n")
	}
}
