package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/xds"
)

// variantsTable says which variants of resources the clients get for which a tree is judged. It has all
// resources with variants.
type variantsTable struct {
	Tree      string        `json:"tree"`
	Resources []variantsRow `json:"resources"`
}

type variantsRow struct {
	Resource diag.Resource `json:"resource"`
	Variants []variantFor  `json:"variants"`
	// None are the clients without a variant.
	None []string `json:"none"`
	key  xds.Key
}

type variantFor struct {
	variantPlace
	// Clients are the names of targets, or the parameters of a client.
	Clients []string `json:"clients"`
}

// tablesOf returns the variantsTable of a source tree as a list; nil if the check is for no client in
// particular.
func tablesOf(path string, checked *check.Result, o check.Options) []variantsTable {
	clients := o.Targets
	if len(clients) == 0 && o.Client != nil {
		clients = []check.Target{{Name: o.Client.String(), Client: *o.Client}}
	}
	if checked.Variants == nil || len(clients) == 0 {
		return nil
	}
	t := variantsTable{path, []variantsRow{}}
	for _, k := range checked.Variants.Keys() {
		row := variantsRow{Resource: diag.Resource{Type: k.Type.URL(), Name: k.Name}, None: []string{}, key: k}
		got := make(map[string]bool)
		for _, r := range checked.Variants.Variants(k) {
			v := variantFor{placeOfVariant(r), []string{}}
			for _, c := range clients {
				if c.Client.Matches(r) {
					v.Clients, got[c.Name] = append(v.Clients, c.Name), true
				}
			}
			row.Variants = append(row.Variants, v)
		}
		for _, c := range clients {
			if !got[c.Name] {
				row.None = append(row.None, c.Name)
			}
		}
		t.Resources = append(t.Resources, row)
	}
	return []variantsTable{t}
}

// The bounds of a variantsTable in text.
const (
	mostRows         = 200 // the largest number of resources
	mostClientsShown = 10  // the largest number of clients of a variant
)

// writeTables prints tables as text.
func writeTables(w io.Writer, tables []variantsTable) error {
	for _, t := range tables {
		if len(t.Resources) == 0 {
			fmt.Fprintf(w, "%s: no resource has variants\n", t.Tree)
			continue
		}
		fmt.Fprintf(w, "%s: what the clients get of resources with variants:\n", t.Tree)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range t.Resources[:min(len(t.Resources), mostRows)] {
			fmt.Fprintf(tw, "%s\n", row.key)
			for _, v := range row.Variants {
				who := "nobody"
				if len(v.Clients) > 0 {
					who = diag.Few(v.Clients, mostClientsShown)
				}
				fmt.Fprintf(tw, "  %s:%d\tfor %s\t%s\n", v.File, v.Line, v.Constraints, who)
			}
			if len(row.None) > 0 {
				fmt.Fprintf(tw, "  none\t\t%s\n", diag.Few(row.None, mostClientsShown))
			}
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if more := len(t.Resources) - mostRows; more > 0 {
			fmt.Fprintf(w, "… and %s\n", diag.Count(more, "more resource"))
		}
	}
	return nil
}
