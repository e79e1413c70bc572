package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"xdspub/tools/sample"
)

// measureLarge compares xdspub validate of ten times as many resources with xdspub validate of size.
func (w setup) measureLarge() error {
	many := sample.Topology{Clusters: 10 * size.Clusters, Routes: 10 * size.Routes, Listeners: 10 * size.Listeners}
	if err := errors.Join(w.topology("some", size), w.topology("many", many)); err != nil {
		return err
	}
	fmt.Printf("\n%d and %d clusters, each with its endpoint assignment, best of %d rounds\n\n", size.Clusters, many.Clusters, rounds)
	fmt.Printf("| | wall time | ratio | processor | ratio | peak memory |\n|---|---|---|---|---|---|\n")
	for _, f := range []form{
		{"YAML, a source tree", ""}, {"YAML, a bootstrap", ".yaml"}, {"JSON, a source tree", "-json"}, {"JSON, a bootstrap", ".json"},
		{"binary, a source tree", "-pb"}, {"binary, a bootstrap", ".pb"}, {"text proto, a source tree", "-pb_text"}, {"text proto, a bootstrap", ".pb_text"},
	} {
		var one, ten best
		for range rounds {
			if err := errors.Join(
				one.measure(w.xdspub, "validate", filepath.Join(w.dir, "some")+f.path),
				ten.measure(w.xdspub, "validate", filepath.Join(w.dir, "many")+f.path),
			); err != nil {
				return err
			}
		}
		fmt.Printf("| %s | %.2f, %.2f s | %.1f | %.2f, %.2f s | %.1f | %.0f, "+
			"%.0f MiB |\n", f.what, one.wall.Seconds(), ten.wall.Seconds(), ten.wall.Seconds()/one.wall.Seconds(),
			one.cpu.Seconds(), ten.cpu.Seconds(), ten.cpu.Seconds()/one.cpu.Seconds(), one.mebibytes(), ten.mebibytes())
	}
	return nil
}
