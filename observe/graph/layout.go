package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"xdspub/diag"
)

// Drawing is a Graph with a layout: a column for each Kind, from left to right. The numbers are pixels.
type Drawing struct {
	Width   int      `json:"width"`
	Height  int      `json:"height"`
	Columns []Column `json:"columns"`
	Nodes   []Box    `json:"nodes"`
	Edges   []Line   `json:"edges"`
	// Notes explain the marks of the Drawing, and count what the Drawing lacks.
	Notes []string `json:"notes"`
}

// Column is the column of a Kind.
type Column struct {
	Kind  Kind   `json:"kind"`
	Title string `json:"title"`
	X     int    `json:"x"`
}

// Box is a Node with its place. Label and Detail fit into the Box: long texts are clipped.
type Box struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Resource is the text by which Find finds the resource; empty for parts and groups.
	Resource string  `json:"resource,omitempty"`
	X        int     `json:"x"`
	Y        int     `json:"y"`
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Label    string  `json:"label"`
	Detail   string  `json:"detail,omitempty"`
	Title    string  `json:"title"`
	Fault    Fault   `json:"fault,omitempty"`
	Change   Change  `json:"change,omitempty"`
	Absence  Absence `json:"absence,omitempty"`
	Count    int     `json:"count,omitempty"`
	Focus    bool    `json:"focus,omitempty"`
}

// Line is an Edge with its curve.
type Line struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Curve is the path data of SVG.
	Curve  string `json:"curve"`
	Title  string `json:"title,omitempty"`
	Fault  Fault  `json:"fault,omitempty"`
	Change Change `json:"change,omitempty"`
	// Absent means that the Box at the end is absent.
	Absent bool `json:"absent,omitempty"`
}

// The measures of a Drawing.
const (
	margin     = 16
	headHeight = 24
	boxHeight  = 40
	boxGap     = 10
	wireHeight = 4 // of an Edge that passes a column
	columnGap  = 48
	leastWidth = 60
	mostWidth  = 210
	textIndent = 11
	labelSize  = 12
	detailSize = 10
	badgeWidth = 12
	noteHeight = 16
)

// charWidth is the width of a character of a monospaced font, in parts of its size. Common fonts have 0.60.
const charWidth = 0.61

// cells returns the width of a character. Characters of other scripts may come from another font, and count twice.
func cells(r rune) float64 {
	if r < 0x250 || r == '…' || r == '✗' || r == '−' {
		return 1
	}
	return 2
}

func textWidth(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		width += cells(r) * size * charWidth
	}
	return width
}

// fit returns a text that is at most width wide. It clips a wider text in the middle.
func fit(text string, size, width float64) string {
	if textWidth(text, size) < width+0.1 { // sums of fractions are not exact
		return text
	}
	runes := []rune(text)
	room := width - size*charWidth // for the …
	var head, tail int
	for used := 0.0; head+tail < len(runes); {
		r := runes[head]
		takeTail := tail < head/2
		if takeTail {
			r = runes[len(runes)-1-tail]
		}
		if used += cells(r) * size * charWidth; used > room {
			break
		}
		if takeTail {
			tail++
		} else {
			head++
		}
	}
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

// vertex is a Node in the layout or, without a Node, the place where Edges to one Node pass a column.
type vertex struct {
	node        *Node
	column      int
	height      float64
	y           float64 // of the centre
	place       float64 // in the order of the column
	left, right []*vertex
	seen        bool
}

// layout is the state of Layout.
type layout struct {
	columns [][]*vertex
	of      map[*Node]*vertex
	wires   map[wire]*vertex
	ways    map[[2]*vertex]bool
}

// wire is a column that Edges to a Node pass.
type wire struct {
	to     *Node
	column int
}

// Layout places the Nodes. The result depends on the Graph alone.
func (g *Graph) Layout() *Drawing {
	l := &layout{of: make(map[*Node]*vertex, len(g.Nodes)), wires: make(map[wire]*vertex), ways: make(map[[2]*vertex]bool)}
	d := &Drawing{Columns: []Column{}, Nodes: []Box{}, Edges: []Line{}, Notes: g.notes()}
	last := -1
	for _, n := range g.Nodes {
		if k := n.Kind.column(); k != last {
			last = k
			l.columns = append(l.columns, nil)
			d.Columns = append(d.Columns, Column{Kind: n.Kind, Title: kinds[k].title})
		}
		l.of[n] = &vertex{node: n, column: len(l.columns) - 1, height: boxHeight}
	}
	for _, e := range g.Edges {
		l.connect(e)
	}
	l.arrange(g)
	l.settle()
	l.write(g, d)
	return d
}

// connect connects the vertices of an Edge that leads to the right.
func (l *layout) connect(e *Edge) {
	from, to := l.of[e.From], l.of[e.To]
	for column := from.column + 1; column <= to.column; column++ {
		next := to
		if column < to.column {
			key := wire{e.To, column}
			if l.wires[key] == nil {
				l.wires[key] = &vertex{column: column, height: wireHeight}
			}
			next = l.wires[key]
		}
		if way := [2]*vertex{from, next}; !l.ways[way] { // Edges to one Node share their way
			l.ways[way] = true
			from.right, next.left = append(from.right, next), append(next.left, from)
		}
		from = next
	}
}

// arrange orders the vertices of each column so that few Edges cross.
func (l *layout) arrange(g *Graph) {
	var visit func(v *vertex)
	visit = func(v *vertex) {
		if v.seen {
			return
		}
		v.seen = true
		l.columns[v.column] = append(l.columns[v.column], v)
		for _, next := range v.right {
			visit(next)
		}
	}
	for _, n := range g.Nodes {
		visit(l.of[n])
	}
	number := func(column []*vertex) {
		for i, v := range column {
			v.place = float64(i)
		}
	}
	for _, column := range l.columns {
		number(column)
	}
	sweep := func(column []*vertex, beside func(*vertex) []*vertex) {
		for _, v := range column {
			if list := beside(v); len(list) > 0 {
				v.place = mean(list, func(of *vertex) float64 { return of.place })
			}
		}
		slices.SortStableFunc(column, func(a, b *vertex) int { return cmp.Compare(a.place, b.place) })
		number(column)
	}
	for range 4 {
		for i := len(l.columns) - 2; i >= 0; i-- {
			sweep(l.columns[i], func(v *vertex) []*vertex { return v.right })
		}
		for i := 1; i < len(l.columns); i++ {
			sweep(l.columns[i], func(v *vertex) []*vertex { return v.left })
		}
	}
}

func mean(list []*vertex, of func(*vertex) float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += of(v)
	}
	return sum / float64(len(list))
}

// settle gives each vertex a height near its neighbours.
func (l *layout) settle() {
	for _, column := range l.columns {
		y := 0.0
		for _, v := range column {
			v.y = y + v.height/2
			y += v.height + boxGap
		}
	}
	height := func(v *vertex) float64 { return v.y }
	for range 3 {
		for i := len(l.columns) - 2; i >= 0; i-- {
			near(l.columns[i], func(v *vertex) (float64, bool) { return mean(v.right, height), len(v.right) > 0 })
		}
		for i := 1; i < len(l.columns); i++ {
			near(l.columns[i], func(v *vertex) (float64, bool) { return mean(v.left, height), len(v.left) > 0 })
		}
	}
	least := math.Inf(1)
	for _, column := range l.columns {
		for _, v := range column {
			least = min(least, v.y-v.height/2)
		}
	}
	for _, column := range l.columns {
		for _, v := range column {
			v.y += margin + headHeight - least
		}
	}
}

// near places the vertices of a column as near as possible to their wishes, in their order and without overlaps. It
// pools neighbours whose wishes contradict the order (isotonic regression).
func near(column []*vertex, wish func(*vertex) (float64, bool)) {
	type pool struct {
		sum  float64
		size int
	}
	var pools []pool
	offsets := make([]float64, len(column))
	offset := 0.0
	for i, v := range column {
		offset += v.height / 2
		offsets[i] = offset
		offset += v.height/2 + boxGap
		y, ok := wish(v)
		if !ok {
			y = v.y
		}
		pools = append(pools, pool{y - offsets[i], 1})
		for len(pools) > 1 {
			a, b := pools[len(pools)-2], pools[len(pools)-1]
			if a.sum/float64(a.size) <= b.sum/float64(b.size) {
				break
			}
			pools = append(pools[:len(pools)-2], pool{a.sum + b.sum, a.size + b.size})
		}
	}
	i := 0
	for _, p := range pools {
		for range p.size {
			column[i].y = p.sum/float64(p.size) + offsets[i]
			i++
		}
	}
}

// write writes boxes and lines.
func (l *layout) write(g *Graph, d *Drawing) {
	widths := make([]int, len(l.columns))
	x := margin
	bottom := margin + headHeight
	for i, column := range l.columns {
		width := max(leastWidth, textWidth(d.Columns[i].Title, detailSize))
		for _, v := range column {
			if v.node != nil {
				label, detail := textWidth(v.node.Label, labelSize)+badgesOf(v.node), textWidth(v.node.Detail, detailSize)
				width = max(width, label+2*textIndent, detail+2*textIndent)
			}
			bottom = max(bottom, int(math.Ceil(v.y+v.height/2)))
		}
		widths[i] = int(min(math.Ceil(width), mostWidth))
		d.Columns[i].X = x
		x += widths[i] + columnGap
	}
	d.Width, d.Height = max(x-columnGap, 0)+margin, bottom+margin
	for _, note := range d.Notes {
		d.Width = max(d.Width, int(textWidth(note, detailSize))+2*margin)
		d.Height += noteHeight
	}
	for _, n := range g.Nodes {
		v := l.of[n]
		width := widths[v.column]
		room := float64(width - 2*textIndent)
		d.Nodes = append(d.Nodes, Box{
			ID: n.ID, Kind: n.Kind, Resource: n.Resource(),
			X: d.Columns[v.column].X, Y: int(math.Round(v.y - v.height/2)), Width: width, Height: boxHeight,
			Label: fit(n.Label, labelSize, room-badgesOf(n)), Detail: fit(n.Detail, detailSize, room), Title: n.title(),
			Fault: n.Fault, Change: n.Change, Absence: n.Absence, Count: n.Count, Focus: n.focus,
		})
	}
	for _, e := range g.Edges {
		d.Edges = append(d.Edges, Line{
			From: e.From.ID, To: e.To.ID, Curve: l.curve(e, d.Columns, widths), Title: e.title(),
			Fault: e.Fault, Change: e.Change, Absent: e.To.Absence != Present,
		})
	}
}

// curve returns the path data of an Edge.
func (l *layout) curve(e *Edge, columns []Column, widths []int) string {
	from, to := l.of[e.From], l.of[e.To]
	x, y := columns[from.column].X+widths[from.column], int(math.Round(from.y))
	toX, toY := columns[to.column].X, int(math.Round(to.y))
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", x, y)
	switch {
	case to.column > from.column:
		for column := from.column + 1; column <= to.column; column++ {
			nextX, nextY := columns[column].X, toY
			if column < to.column {
				nextY = int(math.Round(l.wires[wire{e.To, column}].y))
			}
			half := (x + nextX) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", half, y, half, nextY, nextX, nextY)
			if column < to.column {
				nextX += widths[column]
				fmt.Fprintf(&b, "H%d", nextX)
			}
			x, y = nextX, nextY
		}
		fmt.Fprintf(&b, "m-5-3l5 3l-5 3")
	default: // in a column, or back to the left: from right to right
		toX += widths[to.column]
		bend := max(x, toX) + columnGap*2/3
		fmt.Fprintf(&b, "C%d %d %d %d %d %dm5-3l-5 3l5 3", bend, y, bend, toY, toX, toY)
	}
	return b.String()
}

// badges returns the marks of a Node, which tell without colours what is the matter.
func (n *Node) badges() (marks string) { return marksOf(n.Fault, n.Change) }

func marksOf(f Fault, c Change) string {
	return map[Fault]string{Error: "✗", Warning: "!"}[f] + map[Change]string{Added: "+", Changed: "~", Removed: "−"}[c]
}

func badgesOf(n *Node) float64 {
	width := 0.0
	for range n.badges() {
		width += badgeWidth
	}
	return width
}

// title returns the whole text about a Node.
func (n *Node) title() string {
	noun := kinds[n.Kind.column()].noun
	var lines []string
	switch {
	case n.Count > 0:
		lines = []string{fmt.Sprintf("a group of %s", diag.Count(n.Count, noun))}
	case n.Absence == AtRunTime:
		lines = []string{fmt.Sprintf("%s named by the header %q of each request", noun, n.Key.Name)}
	case n.IsResource():
		lines = []string{fmt.Sprintf("%s, %s", n.Key, n.Key.Type)}
	default:
		lines = []string{fmt.Sprintf("%s %s", noun, n.Label), fmt.Sprintf("%s of %s", n.Path, n.Key)}
	}
	if n.Detail != "" {
		lines = append(lines, n.Detail)
	}
	if n.Change != Unchanged {
		lines = append(lines, string(n.Change))
	}
	for i, line := range lines {
		lines[i] = diag.Clip(line, 3*mostText)
	}
	return strings.Join(append(lines, n.Findings...), "\n")
}

// title returns the text about an Edge.
func (e *Edge) title() string {
	switch {
	case e.Path != "":
		return diag.Clip(string(e.Path), mostText)
	case e.Count > 1:
		return diag.Count(e.Count, "reference")
	}
	return ""
}

// notes returns the Notes of a Drawing.
func (g *Graph) notes() []string {
	notes := []string{}
	used := make(map[string]bool)
	grouped, dashed := 0, false
	for _, n := range g.Nodes {
		for _, mark := range n.badges() {
			used[string(mark)] = true
		}
		dashed = dashed || n.Absence != Present
		grouped += n.Count
	}
	var legend []string
	for _, row := range [][2]string{{"✗", "error"}, {"!", "warning"}, {"+", "added"}, {"~", "changed"}, {"−", "removed"}} {
		if used[row[0]] {
			legend = append(legend, row[0]+" "+row[1])
		}
	}
	if dashed {
		legend = append(legend, "dashed: not in the tree")
	}
	if len(legend) > 0 {
		notes = append(notes, strings.Join(legend, ", "))
	}
	if len(g.Nodes) == 0 {
		notes = append(notes, "no resources")
	}
	if grouped > 0 {
		notes = append(notes, diag.Count(grouped, "node")+" in groups")
	}
	if list := g.Unplaced; len(list) > 0 {
		notes = append(notes, "about no node: "+diag.CountFindings(list.Count(diag.Error), list.Count(diag.Warning)))
	}
	return notes
}
