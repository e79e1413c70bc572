package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"xdspub/tools/sample"
)

// measureReports prints the time of xdspub validate for a tree with 1,000 warnings: with text alone, and with a
// report in each format.
func (w setup) measureReports() error {
	t := sample.Topology{Clusters: 1_000, Routes: 100, Listeners: 10, Deprecated: 1_000}
	if err := w.write("reported", t.Tree()); err != nil {
		return err
	}
	reports := []string{"validate"}
	for _, format := range []string{"json", "sarif", "junit", "github", "gitlab"} {
		reports = append(reports, "--format", format, "--output", filepath.Join(w.dir, "report."+format))
	}
	tree := filepath.Join(w.dir, "reported")
	var none, text, all best
	for range rounds {
		if err := errors.Join(
			none.measure(w.xdspub, "validate", "--quiet", tree),
			text.measure(w.xdspub, "validate", tree),
			all.measure(w.xdspub, append(reports, "--format", "text", tree)...),
		); err != nil {
			return err
		}
	}
	fmt.Printf("\n1,000 warnings of %d clusters, best of %d rounds\n\n| findings | wall time | ratio |\n|---|---|---|\n", t.Clusters, rounds)
	for _, row := range []struct {
		what string
		took best
	}{{"not printed", none}, {"as text", text}, {"in all six formats", all}} {
		fmt.Printf("| %s | %d ms | %.2f |\n", row.what, row.took.wall.Milliseconds(), float64(row.took.wall)/float64(none.wall))
	}
	return nil
}
