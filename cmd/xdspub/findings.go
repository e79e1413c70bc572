package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/diag"
)

// maxFindings returns the largest number of findings to print to w; 0 means no limit.
func maxFindings(c *call, w io.Writer) int {
	if !c.MaxFindings.Given() && isTerminal(w) {
		return settings.MostOnTerminal
	}
	return c.MaxFindings.Value
}

// textOptions say how findings are printed as text.
type textOptions struct {
	most  int  // the largest number of findings; 0 means no limit
	alike bool // print all similar findings
	color bool
}

// textFor returns how a command prints findings to w.
func textFor(c *call, w io.Writer) textOptions {
	return textOptions{most: maxFindings(c, w), alike: c.MaxFindings.Given(), color: colored(c, w)}
}

// writeText prints findings as text, and the number of findings that it leaves out.
func writeText(w io.Writer, checked *check.Result, o textOptions) error {
	list := checked.Diagnostics
	var alike []diag.Alike
	if !o.alike {
		list, alike = list.WithoutAlike()
	}
	most, left := list.Most(o.most)
	if err := diag.WriteText(w, most, diag.TextOptions{Line: checked.Line, Color: o.color}); err != nil {
		return err
	}
	var lines []string
	for _, a := range alike {
		lines = append(lines, a.String())
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("… and %s", diag.Count(left, "more finding")))
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s: --max-findings 0 prints them all\n", strings.Join(lines, "\n"))
	return err
}

// printFindings prints findings to standard error, and ignores errors of writing. refused means that the
// findings are the reason for a refusal.
func printFindings(c *call, checked *check.Result, refused bool) {
	_ = writeText(c.App.ErrWriter, shown(c, checked, refused), textFor(c, c.App.ErrWriter))
}

// shown returns the findings to print. With --quiet these are the errors. If warnings are the reason for a
// refusal, they are the errors and warnings.
func shown(c *call, checked *check.Result, refused bool) *check.Result {
	if !c.Quiet.Value {
		return checked
	}
	least := diag.Error
	if refused && checked.Accepted() {
		least = diag.Warning
	}
	few := *checked
	few.Diagnostics = slices.DeleteFunc(slices.Clone(checked.Diagnostics), func(d diag.Diagnostic) bool { return d.Severity > least })
	return &few
}

// colored reports whether findings that are printed to w have colours. --color decides, then NO_COLOR
// (no-color.org), then CLICOLOR_FORCE and CLICOLOR (bixense.com/clicolors), then whether w is a terminal.
func colored(c *call, w io.Writer) bool {
	force := os.Getenv("CLICOLOR_FORCE")
	switch color := c.Color.Value; {
	case color == settings.ColorAlways || color == settings.ColorNever:
		return color == settings.ColorAlways
	case os.Getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0" && isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
