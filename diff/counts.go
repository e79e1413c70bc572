package diff

import (
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// Counts are the numbers of effects by kind.
type Counts map[Kind]int

// Counts returns the numbers of the effects.
func (d *Diff) Counts() Counts {
	c := make(Counts)
	for _, e := range d.Effects {
		c[e.Kind]++
	}
	return c
}

// CompareEffects returns the effects of a change from one Snapshot to another, without the resources and fields that
// Compare finds.
func CompareEffects(was, is *xds.Snapshot) *Diff {
	s := newSides(was, is)
	return &Diff{Resources: []Resource{}, Effects: effects(s, s.edits())}
}

// nouns has the words for the kinds that disturb, for one and for several.
var nouns = map[Kind][2]string{
	ListenerDrains:    {"listener drains", "listeners drain"},
	FilterChainDrains: {"filter chain drains", "filter chains drain"},
	ClusterReplaced:   {"cluster loses its pools", "clusters lose their pools"},
	ClusterRemoved:    {"cluster goes", "clusters go"},
	RouteMoves:        {"route changes its target", "routes change their targets"},
	EndpointRemoved:   {"endpoint goes", "endpoints go"},
	EndpointAdded:     {"endpoint comes", "endpoints come"},
	EndpointWeight:    {"endpoint changes its weight", "endpoints change their weights"},
	SecretRotates:     {"secret rotates", "secrets rotate"},
	RuntimeChanges:    {"runtime key changes", "runtime keys change"},
}

// String returns the numbers of the effects that end connections or move traffic, in words; empty without one.
func (c Counts) String() string {
	var parts []string
	for _, k := range Kinds {
		switch n := c[k]; {
		case n == 0 || !k.Disturbs():
		case n == 1:
			parts = append(parts, "1 "+nouns[k][0])
		default:
			parts = append(parts, strings.TrimSuffix(diag.Count(n, "x"), "xs")+nouns[k][1])
		}
	}
	return strings.Join(parts, ", ")
}
