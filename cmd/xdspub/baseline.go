package main

import (
	"fmt"
	"io"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/report"
	"xdspub/report/baseline"
)

// known removes findings from results: the findings of --baseline, or all findings, for --write-baseline.
type known struct {
	root  *report.Root
	read  *baseline.Baseline // nil without --baseline
	write string             // the file of --write-baseline
	lists []diag.List        // the findings for --write-baseline
}

// readKnown reads the file of --baseline.
func readKnown(c *call) (*known, error) {
	if c.Baseline.Given() && c.WriteBaseline.Given() {
		return nil, usagef("--write-baseline writes all findings: leave --baseline out")
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	k := &known{root: root, write: c.WriteBaseline.Value}
	if c.Baseline.Given() {
		k.read, err = baseline.Read(c.Baseline.Value)
	}
	return k, err
}

// leaveOut removes the known findings from a Result.
func (k *known) leaveOut(checked *check.Result) {
	switch {
	case k.write != "":
		k.lists = append(k.lists, checked.Diagnostics)
		checked.KeepNew(nil)
	case k.read != nil:
		checked.KeepNew(k.read.Left(checked.Diagnostics, k.root))
	}
}

// finish writes the file of --write-baseline. With --baseline, finish prints how many findings of the baseline
// about the arguments no longer exist.
func (k *known) finish(c *call) error {
	if k.write != "" {
		n := 0
		for _, list := range k.lists {
			n += len(list)
		}
		if err := writeTo(c.App.Writer, k.write, func(w io.Writer) error { return baseline.Write(w, k.lists, k.root) }); err != nil {
			return fmt.Errorf("write the baseline: %w", err)
		}
		fmt.Fprintf(c.App.ErrWriter, "xdspub: %s has %s now\n", k.write, diag.Count(n, "finding"))
		return nil
	}
	if k.read == nil || c.Quiet.Value {
		return nil
	}
	var paths []string
	for _, path := range c.Args().Slice() {
		if path == "-" {
			path = diag.StandardInput
		}
		below, _ := k.root.Path(path)
		paths = append(paths, below)
	}
	if gone := k.read.Gone(paths); gone > 0 {
		fmt.Fprintf(c.App.ErrWriter, "xdspub: %s of %s not found any more: --write-baseline %[2]s "+
			"leaves them out\n", diag.Count(gone, "finding"), c.Baseline.Value)
	}
	return nil
}
