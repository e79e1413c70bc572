package graph_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/observe/graph"
	"xdspub/tools/golden"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// checked checks the source tree in a folder for a client without parameters.
func checked(t testing.TB, path string) *check.Result {
	t.Helper()
	o := check.Options{Path: path, Rules: check.Rules{Client: &variants.Client{}}, AllowEmpty: true}
	if boot := filepath.Join(path, "..", "bootstrap.yaml"); exists(boot) {
		o.Bootstrap = boot
	}
	r, err := check.Once(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// drawn returns the Graph of a checked tree. before may be nil.
func drawn(t testing.TB, r *check.Result, before *xds.Snapshot) *graph.Graph {
	t.Helper()
	g, err := graph.New(t.Context(), r.Snapshot, graph.Options{Findings: append(diag.List{}, r.Diagnostics...), Before: before})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// text returns a Graph as text: each Node with its marks, and below it the Nodes that it leads to.
func text(g *graph.Graph) string {
	var b strings.Builder
	say := func(words ...string) {
		b.WriteString(strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ") + "\n")
	}
	for _, n := range g.Nodes {
		say(string(n.Kind), n.ID, string(n.Fault), string(n.Change), string(n.Absence), fmt.Sprintf("%q", n.Label), fmt.Sprintf("%q", n.Detail))
		for _, e := range g.Edges {
			if e.From != n {
				continue
			}
			times := ""
			if e.Count > 1 {
				times = fmt.Sprintf("×%d", e.Count)
			}
			say("  →", e.To.ID, string(e.Fault), string(e.Change), string(e.Path), times)
		}
		for _, d := range n.Findings {
			say("  ", d)
		}
	}
	for _, d := range g.Unplaced {
		say("unplaced", d.Code)
	}
	return b.String()
}

// extract writes the files of an archive, and returns the folder. Positions in findings stay the same in each run,
// because the test changes its working directory to the folder.
func extract(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestTrees draws the trees of testdata/*.txtar: the folder tree, compared with the folder before if there is one.
// The wanted Graph is in testdata as text.
func TestTrees(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			extract(t, file)
			var before *xds.Snapshot
			if exists("before") {
				before = checked(t, "before").Snapshot
			}
			g := drawn(t, checked(t, "tree"), before)
			t.Chdir(root)
			golden.Compare(t, name+".txt", text(g))
			if name == "review" { // the picture of docs/graph.md
				var b bytes.Buffer
				if err := g.Layout().WriteSVG(&b, graph.SVGOptions{}); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, "../../../docs/pictures/graph.svg", b.String())
			}
		})
	}
}

// TestTypes draws a resource of each type: each is a Node that something leads to, or that the bootstrap asks for.
func TestTypes(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../tools/types/testdata")); err != nil {
		t.Fatal(err)
	}
	g := drawn(t, checked(t, dir), nil)
	drawn := make(map[*xds.Type]string)
	for _, n := range g.Nodes {
		if n.IsResource() && n.Absence == graph.Present {
			drawn[n.Key.Type] = n.ID
		}
	}
	for _, typ := range xds.Types {
		led := slices.ContainsFunc(g.Edges, func(e *graph.Edge) bool { return e.To.ID == drawn[typ] })
		byBootstrap := typ == xds.Listener || typ == xds.Runtime
		if drawn[typ] == "" || led == byBootstrap {
			t.Errorf("%s: drawn as %q, a Node leads to it: %v", typ, drawn[typ], led)
		}
	}
}

// TestQuickstart compares each format with the picture that somebody has looked at.
func TestQuickstart(t *testing.T) {
	g := drawn(t, checked(t, "../../examples/quickstart"), nil)
	svg := func(w io.Writer) error { return g.Layout().WriteSVG(w, graph.SVGOptions{}) }
	for name, write := range map[string]func(io.Writer) error{
		"quickstart.svg": svg, "quickstart.dot": g.WriteDOT, "quickstart.mmd": g.WriteMermaid,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, name, b.String())
	}
}

// TestSameAgain holds that a picture depends on the resources alone, not on their order.
func TestSameAgain(t *testing.T) {
	r := topology(t, 200)
	all := slices.Clone(r.Snapshot.All())
	var want string
	for range 3 {
		g, err := graph.New(t.Context(), xds.NewSnapshot(all), graph.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := g.Limit(graph.Limits{Nodes: 50}).Layout().WriteSVG(&b, graph.SVGOptions{}); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = b.String()
		} else if b.String() != want {
			t.Fatal("a second picture of the same tree differs")
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// TestLimit holds that a Graph has no more Nodes and Edges than its Limits, and that Nodes and groups together count
// each Node once.
func TestLimit(t *testing.T) {
	for _, clusters := range []int{10, 300, 1000} {
		g := drawn(t, topology(t, clusters), nil)
		for _, l := range []graph.Limits{{Nodes: 300}, {Nodes: 50}, {Nodes: 300, Edges: 100}, {Edges: 200}, {Nodes: 10}, {}} {
			few := g.Limit(l)
			if l.Nodes > 0 && len(few.Nodes) > l.Nodes || l.Edges > 0 && len(few.Edges) > l.Edges {
				t.Errorf("%d clusters, %+v: %d nodes, %d edges", clusters, l, len(few.Nodes), len(few.Edges))
			}
			count := 0
			for _, n := range few.Nodes {
				count += max(n.Count, 1)
			}
			if count != len(g.Nodes) {
				t.Errorf("%d clusters, %+v: %d nodes are counted, of %d", clusters, l, count, len(g.Nodes))
			}
			if l == (graph.Limits{Nodes: 300}) && len(g.Nodes) > 300 && len(few.Nodes) < 150 {
				t.Errorf("%d clusters: only %d of 300 nodes are used", clusters, len(few.Nodes))
			}
			if whole := l == (graph.Limits{}); whole && len(few.Nodes) != len(g.Nodes) {
				t.Errorf("%d clusters: without a limit, %d of %d nodes are drawn", clusters, len(few.Nodes), len(g.Nodes))
			}
		}
	}
}

// TestLimitKeeps holds that a group never hides an error or a change while there is room.
func TestLimitKeeps(t *testing.T) {
	r := topology(t, 1000)
	broken, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cluster := r.Snapshot.Lookup(xds.Cluster, "service-00777")
	before := r.Snapshot.Apply(xds.Change{Removed: []*xds.Resource{cluster}})
	routes := r.Snapshot.Of(xds.RouteConfiguration)[55]
	d := routes.Diagnostic("some-rule", "virtual_hosts[7].routes[0]", "wrong")
	g, err := graph.New(t.Context(), r.Snapshot, graph.Options{Findings: diag.List{d}, Before: before})
	if err != nil {
		t.Fatal(err, broken)
	}
	few := g.Limit(graph.Limits{Nodes: 60})
	var ids []string
	for _, n := range few.Nodes {
		ids = append(ids, n.ID)
	}
	for _, id := range []string{"CDS/service-00777", "RDS/" + routes.Name, "RDS/" + routes.Name + "#virtual_hosts[7].routes[0]"} {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is not drawn: %v", id, ids)
		}
	}
	if len(few.Nodes) > 60 {
		t.Errorf("%d nodes", len(few.Nodes))
	}
}

// TestLayout holds that boxes do not overlap, that each text fits into its box, and that columns go from left to
// right.
func TestLayout(t *testing.T) {
	for name, g := range map[string]*graph.Graph{
		"quickstart": drawn(t, checked(t, "../../examples/quickstart"), nil),
		"types":      drawn(t, checked(t, "../../tools/types/testdata"), nil),
		"large":      drawn(t, topology(t, 300), nil),
		"hostile":    drawn(t, hostile(t), nil),
		"empty":      drawn(t, checked(t, t.TempDir()), nil),
	} {
		t.Run(name, func(t *testing.T) {
			d := g.Layout()
			bottom := make(map[int]int) // by x
			boxes := slices.Clone(d.Nodes)
			slices.SortFunc(boxes, func(a, b graph.Box) int { return a.Y - b.Y })
			for _, n := range boxes {
				if n.Y < bottom[n.X] {
					t.Errorf("%s overlaps the box above", n.ID)
				}
				bottom[n.X] = n.Y + n.Height
				if n.X < 0 || n.Y < 0 || n.X+n.Width > d.Width || n.Y+n.Height > d.Height {
					t.Errorf("%s is outside of the picture: %+v", n.ID, n)
				}
				// 7.2 and 6.0 pixels are the widths of a character in the fonts of the style
				if label, detail := utf8.RuneCountInString(n.Label), utf8.RuneCountInString(n.Detail); float64(label)*7.2 > float64(n.Width-16) || float64(detail)*6 > float64(n.Width-16) {
					t.Errorf("%s: %q or %q is wider than %d pixels", n.ID, n.Label, n.Detail, n.Width)
				}
			}
			for i := 1; i < len(d.Columns); i++ {
				if d.Columns[i].X <= d.Columns[i-1].X {
					t.Errorf("column %s is not right of %s", d.Columns[i].Title, d.Columns[i-1].Title)
				}
			}
			for _, e := range d.Edges {
				if strings.Contains(e.Curve, "NaN") {
					t.Errorf("%s to %s: %s", e.From, e.To, e.Curve)
				}
			}
		})
	}
}

// names are names that could end an attribute, an element, a string or a line.
var names = []string{
	"<script>alert(1)</script>", `" onload="alert(1)`, `'"><b>`, "]]>", "a\\", `a\n`, "&lt;b&gt;", "#quot;]", "1. list", "- item", "`code`", "**bold**",
	"end", "line\nbreak", "\x1b[31mred", "\u202egnp.exe", strings.Repeat("long ", 300), "日本語の名前がとても長い場合にどうなるか", strings.Repeat("é\u0301", 50), "a#b", "a%23b", "--> n1", "subgraph",
}

// hostile is a tree whose clusters have hostile names, and a route to each.
func hostile(t testing.TB) *check.Result {
	t.Helper()
	var list []map[string]any
	var routes []map[string]any
	for _, name := range names {
		list = append(list, map[string]any{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS"})
		routes = append(routes, map[string]any{"name": name, "match": map[string]any{"prefix": "/" + name}, "route": map[string]any{"cluster": name}},
			map[string]any{"match": map[string]any{"prefix": "/"}, "route": map[string]any{"cluster": "missing " + name}},
			map[string]any{"match": map[string]any{"prefix": "/"}, "route": map[string]any{"cluster_header": name}})
	}
	list = append(list, map[string]any{"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": names[0],
		"virtual_hosts": []map[string]any{{"name": names[0], "domains": names, "routes": routes}}})
	data, err := json.Marshal(map[string]any{"resources": list})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tree.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	r := checked(t, dir)
	if len(r.Snapshot.Of(xds.Cluster)) != len(names) {
		t.Fatal(r.Diagnostics)
	}
	return r
}

// TestHostileNames reads an SVG image with hostile names: it is XML, and has the elements of an image without names.
func TestHostileNames(t *testing.T) {
	var b bytes.Buffer
	d := drawn(t, hostile(t), nil).Layout()
	if err := d.WriteSVG(&b, graph.SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	elements := make(map[string]int)
	attributes := make(map[string]bool)
	r := xml.NewDecoder(&b)
	titles := ""
	for {
		token, err := r.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch is := token.(type) {
		case xml.StartElement:
			elements[is.Name.Local]++
			for _, a := range is.Attr {
				attributes[a.Name.Local] = true
			}
		case xml.CharData:
			titles += string(is)
		}
	}
	for name := range elements {
		if !slices.Contains([]string{"svg", "style", "text", "path", "title", "rect"}, name) {
			t.Errorf("%d elements %s", elements[name], name)
		}
	}
	if attributes["onload"] {
		t.Error("a name became an attribute")
	}
	if !strings.Contains(titles, "<script>alert(1)</script>") {
		t.Error("the name is not shown as text")
	}
	if strings.ContainsAny(titles, "\x1b\u202e") {
		t.Error("a control character is shown")
	}

	b.Reset()
	link := func(n graph.Box) string { return `/?focus="><script>` + n.Resource }
	if err := d.WriteSVG(&b, graph.SVGOptions{Inline: true, Link: link}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script") || !strings.Contains(b.String(), "<a href=") || strings.Contains(b.String(), "<style") {
		t.Error("a link is not escaped, or missing, or the element has a style sheet")
	}
}

// TestFocus draws a resource of quickstart and its neighbours at a distance.
func TestFocus(t *testing.T) {
	g := drawn(t, checked(t, "../../examples/quickstart"), nil)
	for _, test := range []struct {
		of    string
		depth int
		want  []string
	}{
		{"CDS/web", 0, []string{
			"LDS/ingress", "LDS/ingress#filter_chains[0]", "RDS/ingress", "RDS/ingress#virtual_hosts[0]", "RDS/ingress#virtual_hosts[0].routes[1]",
			"CDS/web", "CDS/web#load_assignment",
		}},
		{"api", 0, nil},
		{"EDS/api", 1, []string{"CDS/api", "EDS/api"}},
		{"eds/api", 2, []string{"RDS/ingress", "RDS/ingress#virtual_hosts[0]", "RDS/ingress#virtual_hosts[0].routes[0]", "CDS/api", "EDS/api"}},
		{"LDS/ingress", 1, []string{
			"LDS/ingress", "LDS/ingress#filter_chains[0]", "RDS/ingress", "RDS/ingress#virtual_hosts[0]", "RDS/ingress#virtual_hosts[0].routes[0]",
			"RDS/ingress#virtual_hosts[0].routes[1]",
		}},
	} {
		n, err := g.Find(test.of)
		if test.want == nil {
			if err == nil || err.Error() != "several resources have this name: write CDS/api or EDS/api" {
				t.Errorf("%s: %v", test.of, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.of, err)
			continue
		}
		var got []string
		few := g.Focus(n, test.depth)
		for _, n := range few.Nodes {
			got = append(got, n.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s, depth %d: %q, want %q", test.of, test.depth, got, test.want)
		}
		if len(few.Edges) != len(few.Nodes)-1 {
			t.Errorf("%s, depth %d: %d edges of %d nodes", test.of, test.depth, len(few.Edges), len(few.Nodes))
		}
	}
}

// TestFind holds what Find says about a text that names no resource.
func TestFind(t *testing.T) {
	small, large := drawn(t, checked(t, "../../examples/quickstart"), nil), drawn(t, topology(t, 100), nil)
	for _, test := range []struct {
		graph     *graph.Graph
		text, say string
	}{
		{small, "wbe", "no resource has this name: did you mean CDS/web?"},
		{small, "CDS/wbe", "no resource has this name: did you mean CDS/web?"},
		{small, "EDS/web", "no resource has this name: did you mean CDS/web?"},
		{small, "XDS/web", "no resource has this name: did you mean CDS/web?"},
		{small, "nothing", "no resource has this name: use LDS/ingress, RDS/ingress, CDS/api, CDS/web, EDS/api"},
		{small, "", "no resource has this name: use LDS/ingress, RDS/ingress, CDS/api, CDS/web, EDS/api"},
		{large, "nothing", "no resource has this name: write NAME, or API/NAME such as CDS/web"},
		{large, "service-0042", "no resource has this name: did you mean CDS/service-00042?"},
		{drawn(t, checked(t, t.TempDir()), nil), "web", "there are no resources"},
	} {
		if _, err := test.graph.Find(test.text); err == nil || !strings.HasPrefix(err.Error(), test.say) {
			t.Errorf("%q: %v, want %s", test.text, err, test.say)
		}
	}
}

// TestModel holds that the exported model of a page has the places and the marks of the picture.
func TestModel(t *testing.T) {
	d := drawn(t, checked(t, "../../examples/quickstart"), nil).Layout()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", " "); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "quickstart.json", b.String()+"\n")
}

// TestAtRunTime holds that the Graph and package envoyapi agree which fields name the clusters of each request.
func TestAtRunTime(t *testing.T) {
	for _, ref := range xds.References {
		if ref.Target != xds.Cluster || ref.Kind != xds.ClusterName {
			continue
		}
		for _, v := range envoyapi.Versions {
			if dynamic := v.OnMissing(ref.Field) == envoyapi.Dynamic; dynamic != (ref.Field.Name() == "cluster_header") {
				t.Errorf("Envoy %s takes the cluster of %s from each request: %v", v.Name, ref.Field, dynamic)
			}
		}
	}
}
