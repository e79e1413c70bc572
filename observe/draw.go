package observe

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/observe/graph"
	"xdspub/xds"
)

// mostNodes is the number of nodes that a graph shows, unless the request asks for all.
const mostNodes = 300

// mostOfAll bounds a graph with all nodes: a browser draws no more.
const mostOfAll = 50_000

// graphPage is the content of /graph.
type graphPage struct {
	Title, Target, Focus, Error string
	All                         bool
	Of                          string   // which snapshot the graph shows
	Targets                     []string // the other targets
	Image                       template.HTML
}

// serveGraph serves the graph of a target as a page, with a link behind each resource.
func (o *Observer) serveGraph(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	data := graphPage{Title: "Graph", Target: q.Get("target"), Focus: strings.TrimSpace(q.Get("focus")), All: q.Has("all")}
	for _, v := range o.views() {
		if v.name != data.Target {
			data.Targets = append(data.Targets, v.name)
		}
	}
	drawn, of, err := o.draw(r.Context(), data.Target, data.Focus, data.All)
	code := http.StatusOK
	if err != nil {
		data.Error, code = err.Error(), http.StatusNotFound
	} else {
		data.Of = of
		var b strings.Builder
		err := drawn.WriteSVG(&b, graph.SVGOptions{Inline: true, Link: func(box graph.Box) string {
			if box.Resource == "" {
				return ""
			}
			return "graph?" + url.Values{"target": {data.Target}, "focus": {box.Resource}}.Encode()
		}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		data.Image = template.HTML(b.String()) // WriteSVG has escaped the names
	}
	render(w, code, "graph.html", data)
}

// serveImage serves the graph of a target as an SVG image.
func (o *Observer) serveImage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	drawn, _, err := o.draw(r.Context(), q.Get("target"), q.Get("focus"), q.Has("all"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'") // the style is in the image
	_ = drawn.WriteSVG(w, graph.SVGOptions{})                                                  // an error means that the client has left
}

// draw draws the graph of a target: of the source tree while it is refused, and else of the published snapshot. Only
// one graph is drawn at a time, because a graph of 10,000 clusters decodes all of them.
func (o *Observer) draw(ctx context.Context, target, focus string, all bool) (drawn *graph.Drawing, of string, err error) {
	select {
	case o.drawing <- struct{}{}:
		defer func() { <-o.drawing }()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	views := o.views()
	i := slices.IndexFunc(views, func(v view) bool { return v.name == target })
	if i < 0 {
		return nil, "", fmt.Errorf("there is no target %q", diag.Printable(target))
	}
	v := &views[i]
	shown, before, findings, of := v.live, v.before, v.watch.Checked.Findings, "the published snapshot; marks show its last change"
	switch {
	case v.read != nil && (v.watch.Refused != nil || v.live == nil):
		shown, before, of = v.read, v.live, "the source tree, which is not published; marks compare it with the published snapshot"
		if v.watch.Refused != nil {
			findings = slices.Concat(findings, v.watch.Refused.Findings)
		}
	case v.live == nil:
		return nil, "", errors.New("nothing is published, and the source tree is not read yet")
	}
	drawn, err = drawSnapshot(ctx, shown, graph.Options{Findings: findings, Before: before}, focus, all)
	return drawn, of, err
}

func drawSnapshot(ctx context.Context, s *xds.Snapshot, o graph.Options, focus string, all bool) (*graph.Drawing, error) {
	g, err := graph.New(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if focus != "" {
		of, err := g.Find(focus)
		if err != nil {
			return nil, err
		}
		g = g.Focus(of, 0)
	}
	limit := mostNodes
	if all {
		limit = mostOfAll
	}
	return g.Limit(graph.Limits{Nodes: limit}).Layout(), nil
}
