// Package graph draws a Snapshot: listeners, their filter chains, route configurations with virtual hosts and routes,
// clusters, endpoints and secrets, and the references between them. References come from the catalogue of package xds.
// A Graph of 10,000 clusters takes a second: keep the Graph as long as its Snapshot.
//
//	g, err := graph.New(ctx, snapshot, graph.Options{Findings: findings, Before: published})
//	g = g.Limit(graph.Limits{Nodes: 300})
//	err = g.Layout().WriteSVG(w, graph.SVGOptions{})
package graph

import (
	"cmp"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// Options are the options of New.
type Options struct {
	// Findings are the findings about the Snapshot. They mark resources and references. Nil means that nobody has
	// judged the Snapshot.
	Findings diag.List
	// Before is the Snapshot before the last change, from which New marks what the change has touched; nil for none.
	Before *xds.Snapshot
}

// Kind is what a Node stands for.
type Kind string

// The Kinds, in the order of their columns.
const (
	Listener           Kind = "listener"
	FilterChain        Kind = "filter-chain"
	ExtensionConfig    Kind = "extension-config"
	Scope              Kind = "scope"
	RouteConfiguration Kind = "route-configuration"
	VirtualHost        Kind = "virtual-host"
	Route              Kind = "route"
	Cluster            Kind = "cluster"
	Endpoints          Kind = "endpoints"
	Endpoint           Kind = "endpoint"
	Secret             Kind = "secret"
	Runtime            Kind = "runtime"
)

// kinds has the title of the column of each Kind, the noun of one node, and the type of the resources.
var kinds = []struct {
	kind        Kind
	title, noun string
	resource    *xds.Type
}{
	{kind: Listener, title: "listeners", noun: "listener", resource: xds.Listener},
	{kind: FilterChain, title: "filter chains", noun: "filter chain"},
	{kind: ExtensionConfig, title: "extension configs", noun: "extension config", resource: xds.ExtensionConfig},
	{kind: Scope, title: "scopes", noun: "scope", resource: xds.ScopedRoutes},
	{kind: RouteConfiguration, title: "route configs", noun: "route configuration", resource: xds.RouteConfiguration},
	{kind: VirtualHost, title: "virtual hosts", noun: "virtual host", resource: xds.VirtualHost},
	{kind: Route, title: "routes", noun: "route"},
	{kind: Cluster, title: "clusters", noun: "cluster", resource: xds.Cluster},
	{kind: Endpoints, title: "endpoints", noun: "endpoint assignment", resource: xds.Endpoints},
	{kind: Endpoint, title: "LEDS endpoints", noun: "LEDS endpoint", resource: xds.LocalityEndpoints},
	{kind: Secret, title: "secrets", noun: "secret", resource: xds.Secret},
	{kind: Runtime, title: "runtime layers", noun: "runtime layer", resource: xds.Runtime},
}

// column returns the place of the Kind among the Kinds.
func (k Kind) column() int {
	for i := range kinds {
		if kinds[i].kind == k {
			return i
		}
	}
	return 0
}

// kindOf returns the Kind of the resources of a type.
func kindOf(t *xds.Type) Kind {
	for i := range kinds {
		if kinds[i].resource == t {
			return kinds[i].kind
		}
	}
	return ""
}

// Fault is the worst finding about a Node or an Edge.
type Fault string

// The Faults.
const (
	NoFault Fault = ""
	Warning Fault = "warning"
	Error   Fault = "error"
)

func worse(a, b Fault) Fault {
	if a == Error || b == Error {
		return Error
	}
	return cmp.Or(a, b)
}

// Change is what the last change has done to a Node or an Edge.
type Change string

// The Changes. A removed resource has no edges.
const (
	Unchanged Change = ""
	Added     Change = "added"
	Changed   Change = "changed"
	Removed   Change = "removed"
)

// Absence is why a Node is not in the Snapshot.
type Absence string

// The Absences.
const (
	// Present means that the Node is in the Snapshot.
	Present Absence = ""
	// Missing means that a reference dangles, because no resource answers the reference.
	Missing Absence = "missing"
	// Elsewhere means that the Snapshot lacks the resource, and that another config source or the bootstrap may
	// have it.
	Elsewhere Absence = "elsewhere"
	// AtRunTime means that Envoy takes the name from each request.
	AtRunTime Absence = "at-run-time"
)

// Node is a resource, a part of a resource, or a group of Nodes.
type Node struct {
	// ID identifies the Node in its Graph, and is the same in a later Graph of the same tree. The ID of a resource
	// is its API and its name, as in CDS/web.
	ID   string
	Kind Kind
	// Key is the resource that the Node stands for, or that has the part.
	Key xds.Key
	// Path is the path of a part in its resource; empty for a resource.
	Path xds.Path
	// Label and Detail are two lines of text.
	Label, Detail string
	// Findings are the first findings about the Node.
	Findings []string
	Fault    Fault
	Change   Change
	Absence  Absence
	// Count is the number of Nodes in a group; 0 for a Node that is no group.
	Count int

	focus bool
	order int // in the Graph of New
}

// IsResource reports whether the Node stands for a resource, present or absent.
func (n *Node) IsResource() bool { return n.Path == "" && n.Count == 0 && n.Absence != AtRunTime }

// Resource returns the API and the name of the resource, as Find reads them; empty for other Nodes.
func (n *Node) Resource() string {
	if !n.IsResource() {
		return ""
	}
	return n.Key.Type.API + "/" + n.Key.Name
}

// Edge is a reference between two Nodes, or the step from a Node to one of its parts.
type Edge struct {
	From, To *Node
	// Path is the path of the reference in the resource of From; empty for a step to a part.
	Path   xds.Path
	Fault  Fault
	Change Change
	// Count is the number of references from From to To; 0 for a step to a part.
	Count int
}

// IsPart reports whether To is a part of From.
func (e *Edge) IsPart() bool { return e.Count == 0 }

// Graph is a picture of a Snapshot without a layout. A Graph is immutable.
type Graph struct {
	// Nodes are in the order of Kinds, and then in the order of the Snapshot and of the parts in a resource.
	Nodes []*Node
	Edges []*Edge
	// Unplaced are the findings that no Node shows, such as findings about a file that can't be read.
	Unplaced diag.List
	// Resources is the number of resources in the Snapshot.
	Resources int
}

var escapes = strings.NewReplacer("%", "%25", "#", "%23")

// escape returns a name for an ID, in which # begins the path of a part.
func escape(name string) string { return escapes.Replace(name) }

func idOf(k xds.Key, path xds.Path) string {
	id := k.Type.API + "/" + escape(k.Name)
	if path != "" {
		id += "#" + string(path)
	}
	return id
}

// sorted returns a Graph of nodes and edges in the order of Graph.Nodes.
func sorted(nodes []*Node, edges []*Edge) *Graph {
	slices.SortStableFunc(nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Kind.column(), b.Kind.column()), cmp.Compare(a.order, b.order))
	})
	at := make(map[*Node]int, len(nodes))
	for i, n := range nodes {
		at[n] = i
	}
	slices.SortStableFunc(edges, func(a, b *Edge) int {
		return cmp.Or(cmp.Compare(at[a.From], at[b.From]), cmp.Compare(at[a.To], at[b.To]))
	})
	return &Graph{Nodes: nodes, Edges: edges}
}

// neighbours are the Edges of each Node.
type neighbours struct{ out, in map[*Node][]*Edge }

func (g *Graph) neighbours() neighbours {
	n := neighbours{make(map[*Node][]*Edge, len(g.Nodes)), make(map[*Node][]*Edge, len(g.Nodes))}
	for _, e := range g.Edges {
		n.out[e.From] = append(n.out[e.From], e)
		n.in[e.To] = append(n.in[e.To], e)
	}
	return n
}
