package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/pipeline"
)

func validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check a source tree; nothing is written",
		ArgsUsage: "PATH…",
		Flags: append(sourceFlags(),
			&cli.StringSliceFlag{Name: "format", EnvVars: env("format"), Value: cli.NewStringSlice("text"), Usage: "print findings as `text|json`; may be repeated, each with its --output"},
			&cli.StringSliceFlag{Name: "output", EnvVars: env("output"), Usage: "write the findings to `FILE`, - for standard output"},
		),
		Action: validateAction,
	}
}

func validateAction(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("validate wants a PATH: see xdspub validate --help")
	}
	if err := settle(c, c.Args().First()); err != nil {
		return err
	}
	formats, outputs := c.StringSlice("format"), c.StringSlice("output")
	for _, f := range formats {
		if f != "text" && f != "json" {
			return usagef("--format %q is none of text, json", f)
		}
	}
	if len(outputs) == 0 && len(formats) == 1 {
		outputs = []string{"-"}
	}
	if len(outputs) != len(formats) {
		return usagef("%d times --format and %d times --output: each format needs its output", len(formats), len(outputs))
	}
	checked, err := checkAll(c)
	if err != nil {
		return err
	}
	for i, format := range formats {
		if err := writeFindings(c.App.Writer, format, outputs[i], checked); err != nil {
			return err
		}
	}
	return verdict(c, checked)
}

// checkAll judges each path as a tree of its own and puts the findings together.
func checkAll(c *cli.Context) (*pipeline.Checked, error) {
	var all *pipeline.Checked
	for _, path := range c.Args().Slice() {
		o, err := options(c, path, nil)
		if err != nil {
			return nil, err
		}
		checked, err := pipeline.New(o).Check()
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = checked
			continue
		}
		all.Merge(checked)
	}
	return all, nil
}

// verdict is the exit status for what was found.
func verdict(c *cli.Context, checked *pipeline.Checked) error {
	if !checked.Accepted() || c.Bool("warnings-as-errors") && checked.Summary.Warnings > 0 {
		return &exit{status: exitRefused}
	}
	return nil
}

func writeFindings(stdout io.Writer, format, output string, checked *pipeline.Checked) error {
	w := stdout
	if output != "-" {
		f, err := os.Create(output)
		if err != nil {
			return err
		}
		defer f.Close()
		w = f
	}
	if format == "json" {
		return diag.WriteJSON(w, checked.Diagnostics, checked.Summary)
	}
	if err := diag.WriteText(w, checked.Diagnostics, diag.TextOptions{Line: checked.Line, Color: colored(w)}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, summary(checked.Summary))
	return err
}

func summary(s diag.Summary) string {
	return fmt.Sprintf("%s, %s in %s of %s", count(s.Errors, "error"), count(s.Warnings, "warning"), count(s.Resources, "resource"), count(s.Files, "file"))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// colored tells whether w is a terminal that wants colours (no-color.org).
func colored(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
