package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// compared lists the differences between the resources of two clients.
type compared struct {
	variants.Client
	Against            params.Parameters            `json:"against"`
	AgainstAuthorities map[string]params.Parameters `json:"against_authorities,omitempty"`
	Resources          []comparedVariants           `json:"resources"`
	second             variants.Client
}

type comparedVariants struct {
	Resource diag.Resource `json:"resource"`
	// First and Second are the variants that the clients get; nil for none.
	First  *variantPlace `json:"first"`
	Second *variantPlace `json:"second"`
	// Fields are the fields that differ; empty if one client gets nothing.
	Fields []xds.Path `json:"fields"`
	key    xds.Key
}

const (
	mostFields      = 100 // the largest number of differing fields of a resource
	mostFieldsShown = 5   // the largest number in text
)

func comparison(checked *check.Result, client, against variants.Client) compared {
	c := compared{client, against.Parameters, against.Authorities, []comparedVariants{}, against}
	one := checked.Variants.For(client)
	two := one.Then(checked.Variants, against)
	for _, k := range checked.Variants.Keys() {
		a, b := one.Variant(k), two.Variant(k)
		if a == b {
			continue
		}
		r := comparedVariants{Resource: diag.Resource{Type: k.Type.URL(), Name: k.Name}, Fields: []xds.Path{}, key: k}
		if a != nil {
			r.First = new(placeOfVariant(a))
		}
		if b != nil {
			r.Second = new(placeOfVariant(b))
		}
		if a != nil && b != nil {
			r.Fields = append(r.Fields, a.Differing(b, mostFields)...)
		}
		c.Resources = append(c.Resources, r)
	}
	return c
}

func writeCompared(w io.Writer, c compared, _ time.Time) error {
	if len(c.Resources) == 0 {
		_, err := fmt.Fprintf(w, "a client with %s gets the same as one with %s\n", c.Client, c.second)
		return err
	}
	fmt.Fprintf(w, "the first client has %s, the second %s:\n", c.Client, c.second)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range c.Resources {
		fmt.Fprintf(tw, "%s\n", r.key)
		for _, gets := range []struct {
			who string
			*variantPlace
		}{{"first", r.First}, {"second", r.Second}} {
			if gets.variantPlace == nil {
				fmt.Fprintf(tw, "  %s\tnothing\n", gets.who)
			} else {
				fmt.Fprintf(tw, "  %s\t%s:%d\tfor %s\n", gets.who, gets.File, gets.Line, gets.Constraints)
			}
		}
		switch {
		case r.First == nil || r.Second == nil:
		case len(r.Fields) == 0:
			fmt.Fprint(tw, "  with the same content\n")
		default:
			fmt.Fprintf(tw, "  differing in %s\n", diag.Few(fieldNames(r.Fields), mostFieldsShown))
		}
	}
	return tw.Flush()
}

func fieldNames(paths []xds.Path) (names []string) {
	for _, path := range paths {
		names = append(names, string(path))
	}
	return names
}
