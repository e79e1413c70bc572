package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"xdspub/diag"
	"xdspub/observe/graph"
	"xdspub/watch/control"
	"xdspub/xds"
)

// The bounds of a graph, and of a graph with all nodes.
var (
	usualGraph = graph.Limits{Nodes: 300, Edges: 2000}
	wholeGraph = graph.Limits{Nodes: 50_000, Edges: 100_000}
)

const (
	// mostDrawn is the size of an image in bytes. A browser is slow from a few megabytes on.
	mostDrawn = 32 << 20
	// mostKept is the size of all images that are kept for the next request.
	mostKept = 64 << 20
	// mostWaiting is the number of requests that wait for their turn to draw.
	mostWaiting = 8
)

var (
	errUnread = errors.New("nothing is published, and the source tree is not read yet")
	errBusy   = errors.New("too many graphs are being drawn: try again in some seconds")
	errLarge  = fmt.Errorf("the image is larger than %d MiB: ask for one resource by focus", mostDrawn>>20)
)

// drawings draws graphs, one at a time, and keeps the last images: all readers of an image share its bytes.
type drawings struct {
	turn    chan struct{} // full while a graph is drawn
	waiting chan struct{} // one element for each request that draws or waits

	mu   sync.Mutex
	kept []*image // the last used first
}

// image is the SVG of a graph.
type image struct {
	of  imageOf
	svg []byte
}

// imageOf identifies an image.
type imageOf struct {
	target, focus string
	all, inline   bool
	content
}

// content is what a graph shows. Snapshots are immutable, and the findings are those of the last pass.
type content struct {
	shown, before *xds.Snapshot
	pass          *control.Reconcile
}

func newDrawings() *drawings {
	return &drawings{turn: make(chan struct{}, 1), waiting: make(chan struct{}, mostWaiting)}
}

// find returns a kept image; nil if there is none.
func (d *drawings) find(of imageOf) *image {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.kept, func(is *image) bool { return is.of == of })
	if i < 0 {
		return nil
	}
	is := d.kept[i]
	d.kept = slices.Insert(slices.Delete(d.kept, i, i+1), 0, is)
	return is
}

// keep keeps an image. keep drops the images of earlier content, whose Snapshots would stay in memory, and the images
// used least recently above mostKept.
func (d *drawings) keep(is *image) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.DeleteFunc(d.kept, func(k *image) bool { return k.of.target == is.of.target && k.of.content != is.of.content })
	d.kept = slices.Insert(d.kept, 0, is)
	size := 0
	for i, k := range d.kept {
		if size += len(k.svg); size > mostKept && i > 0 {
			clear(d.kept[i:])
			d.kept = d.kept[:i]
			return
		}
	}
}

// forget drops the images of a target.
func (d *drawings) forget(target string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = slices.DeleteFunc(d.kept, func(k *image) bool { return k.of.target == target })
}

// image returns the image of a graph, which draw draws if it is not kept.
func (d *drawings) image(ctx context.Context, of imageOf, draw func() (*graph.Drawing, error)) ([]byte, error) {
	if is := d.find(of); is != nil {
		return is.svg, nil
	}
	select {
	case d.waiting <- struct{}{}:
		defer func() { <-d.waiting }()
	default:
		return nil, errBusy
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if is := d.find(of); is != nil { // drawn meanwhile
		return is.svg, nil
	}
	drawn, err := draw()
	if err != nil {
		return nil, err
	}
	options := graph.SVGOptions{Inline: of.inline}
	if of.inline {
		options.Link = func(box graph.Box) string {
			if box.Resource == "" {
				return ""
			}
			return "graph?" + url.Values{"target": {of.target}, "focus": {box.Resource}}.Encode()
		}
	}
	var b limitedBuffer
	if err := drawn.WriteSVG(&b, options); err != nil {
		return nil, err
	}
	is := &image{of, bytes.Clone(b.Bytes())}
	d.keep(is)
	return is.svg, nil
}

// limitedBuffer is a buffer of at most mostDrawn bytes.
type limitedBuffer struct{ bytes.Buffer }

// Write writes p, or returns errLarge.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostDrawn {
		return 0, errLarge
	}
	return b.Buffer.Write(p)
}

// graphPage is the content of /graph.
type graphPage struct {
	Title, Target, Focus, Error string
	All                         bool
	Of                          string   // which snapshot the graph shows
	Targets                     []string // the other targets
	Image                       bool
}

// unread is the image of a source tree that is not read yet.
const unread = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="40"><text x="8" y="24" font-family="monospace" font-size="12" ` +
	`fill="#808080">The source tree is not read yet.</text></svg>`

// imagePlace is the place of the image in the template of /graph.
const imagePlace = "<!--image-->"

// serveGraph serves the graph of a target as a page, with a link behind each resource.
func (o *Observer) serveGraph(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // without drawing
		return
	}
	q := r.URL.Query()
	data := graphPage{Title: "Graph", Target: diag.Printable(q.Get("target")), Focus: diag.Printable(strings.TrimSpace(q.Get("focus"))), All: q.Has("all")}
	for _, v := range o.views() {
		if v.name != data.Target {
			data.Targets = append(data.Targets, v.name)
		}
	}
	svg, of, err := o.draw(r.Context(), data.Target, data.Focus, data.All, true)
	code := http.StatusOK
	if data.Of, data.Image = of, err == nil; err != nil {
		data.Error, code = err.Error(), codeOf(w, err)
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "graph.html", data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	before, after, _ := bytes.Cut(b.Bytes(), []byte(imagePlace))
	for _, part := range [][]byte{before, svg, after} { // WriteSVG has escaped the names
		if _, err := w.Write(part); err != nil {
			return // the client has left
		}
	}
}

// serveImage serves the graph of a target as an SVG image.
func (o *Observer) serveImage(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	q := r.URL.Query()
	svg, _, err := o.draw(r.Context(), q.Get("target"), q.Get("focus"), q.Has("all"), false)
	if errors.Is(err, errUnread) { // the page may be open before the first pass
		svg, err = []byte(unread), nil
	}
	if err != nil {
		http.Error(w, err.Error(), codeOf(w, err))
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'") // the style is in the image
	_, _ = w.Write(svg)                                                                        // an error means that the client has left
}

// codeOf returns the status of an error of draw.
func codeOf(w http.ResponseWriter, err error) int {
	switch {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
		return http.StatusServiceUnavailable
	case errors.Is(err, errLarge):
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusNotFound
}

// draw returns the image of the graph of a target: of the source tree while it is refused, and else of the published
// snapshot.
func (o *Observer) draw(ctx context.Context, target, focus string, all, inline bool) (svg []byte, of string, err error) {
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
		return nil, "", errUnread
	}
	is := imageOf{target, focus, all, inline, content{shown, before, v.watch.Last}}
	svg, err = o.drawings.image(ctx, is, func() (*graph.Drawing, error) {
		return drawSnapshot(ctx, shown, graph.Options{Findings: findings, Before: before}, focus, all)
	})
	return svg, of, err
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
	if all {
		return g.Limit(wholeGraph).Layout(), nil
	}
	return g.Limit(usualGraph).Layout(), nil
}
