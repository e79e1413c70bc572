package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"xdspub/tools/sample"
)

// varied clusters have variantsEach variants, whose constraints have variantKeys keys in all.
const (
	varied       = 200
	variantsEach = 10
	variantKeys  = 20
)

// measureVariants prints the time of xdspub validate for a tree of 10,000 resources, and for the same tree in which
// some clusters have variants.
func (w setup) measureVariants() error {
	t := sample.Topology{Clusters: 4_500, Routes: 900, Listeners: 100}
	plain, with := t.Files(), t.Files()
	for i := range varied {
		with[fmt.Sprintf("clusters/%06d.yaml", i)] = variantsOf(t, i)
	}
	if err := errors.Join(w.write("plain", inFilesOf(10, plain)), w.write("varied", inFilesOf(10, with))); err != nil {
		return err
	}
	var without, took best
	for range rounds {
		if err := errors.Join(
			without.measure(w.xdspub, "validate", "--quiet", filepath.Join(w.dir, "plain")),
			took.measure(w.xdspub, "validate", "--quiet", filepath.Join(w.dir, "varied")),
		); err != nil {
			return err
		}
	}
	fmt.Printf("\n10,000 resources, best of %d rounds\n\n| | wall time | ratio | peak memory |\n|---|---|---|---|\n", rounds)
	fmt.Printf("| without variants | %.2f s | 1 | %.0f MiB |\n", without.wall.Seconds(), without.mebibytes())
	fmt.Printf("| %d clusters have %d variants each, by %d keys | %.2f s | %.2f | %.0f MiB |\n", varied, variantsEach, variantKeys,
		took.wall.Seconds(), took.wall.Seconds()/without.wall.Seconds(), took.mebibytes())
	return nil
}

// variantsOf returns the variants of the i-th cluster. The last variant is for all other clients, and each earlier
// variant for one value of a key.
func variantsOf(t sample.Topology, i int) string {
	key := fmt.Sprintf("key%02d", i%variantKeys)
	var all []string
	var named []string
	for v := range variantsEach {
		of := fmt.Sprintf("{constraint: {key: %s, value: v%d}}", key, v)
		if v == variantsEach-1 {
			of = fmt.Sprintf("{not_constraints: {or_constraints: {constraints: [%s]}}}", strings.Join(named, ", "))
		}
		named = append(named, of)
		all = append(all, fmt.Sprintf("\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nresource_name: {name: "+
			"service-%05d, dynamic_parameter_constraints: %s}\nresource:\n  %s\n",
			i, of, strings.ReplaceAll(strings.TrimSpace(t.Cluster(i, v)), "\n", "\n  ")))
	}
	return strings.Join(all, "---\n")
}
