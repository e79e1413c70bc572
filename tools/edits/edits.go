// Package edits makes random changes of a Snapshot, for tests.
package edits

import (
	"math/rand/v2"
	"slices"

	"xdspub/source/load"
	"xdspub/xds"
)

// Random returns a random change of a Snapshot that adds, replaces or removes one to three resources. Each
// element of contents lists the possible texts of a resource in YAML.
func Random(random *rand.Rand, s *xds.Snapshot, contents [][]string) (c xds.Change) {
	for range 1 + random.IntN(3) {
		texts := contents[random.IntN(len(contents))]
		r := load.Parse(load.Input{Name: "r.yaml", Format: "yaml", Data: []byte(texts[random.IntN(len(texts))])}).Resources()[0]
		if slices.ContainsFunc(slices.Concat(c.Added, c.Removed), func(o *xds.Resource) bool { return o.Key == r.Key }) {
			continue
		}
		c.Removed = append(c.Removed, s.Named(r.Key)...)
		if random.IntN(3) > 0 {
			c.Added = append(c.Added, r)
		}
	}
	return c
}
