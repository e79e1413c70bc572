package transition

import (
	"fmt"
	"slices"

	"xdspub/xds"
)

// singletonUse is a place that uses a singleton.
type singletonUse struct {
	xds.SingletonUse
	in *xds.Resource
}

// singletonTypes are the types of the resources that can use singletons.
var singletonTypes = append(slices.Clone(xds.Entrypoints),
	xds.TypesThat(func(t *xds.Type) bool { return t.Extensions && !slices.Contains(xds.Entrypoints, t) })...)

// singletonUses returns the places that use singletons. of returns the resources of a type.
func singletonUses(of func(*xds.Type) ([]*xds.Resource, error)) ([]singletonUse, error) {
	var all []singletonUse
	for _, t := range singletonTypes {
		resources, err := of(t)
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			if !r.UsesSingletons() {
				continue
			}
			f := r.Facts()
			if f.SingletonsErr != nil {
				return nil, fmt.Errorf("%s: %w", r.Key, f.SingletonsErr)
			}
			for _, s := range f.Singletons {
				all = append(all, singletonUse{s, r})
			}
		}
	}
	return all, nil
}
