package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/report"
	"xdspub/source/gitdir"
)

// output is a destination of findings, with their format. The file - is standard output.
type output struct{ format, file string }

// outputs returns the outputs of --format and --output. With equal numbers of both options, the n-th --output
// belongs to the n-th --format. Otherwise an --output belongs to the --format right before it.
func outputs(c *call) ([]output, error) {
	formats, files := c.ReportFormat.Value, c.ReportOutput.Value
	for _, f := range formats {
		if !slices.Contains(settings.ReportFormats(), f) {
			return nil, usagef("invalid --format %q: %s", f, settings.OneOf(settings.ReportFormats(), f))
		}
	}
	var list []output
	if len(formats) == len(files) {
		for i, f := range formats {
			list = append(list, output{f, files[i]})
		}
		return list, distinct(list)
	}
	formatBefore := false
	for _, given := range c.Line {
		switch isFormat := c.ReportFormat.Of(given); {
		case isFormat:
			list = append(list, output{given.Text, "-"})
			formatBefore = true
		case !c.ReportOutput.Of(given):
		case !formatBefore:
			return nil, usagef("--output %s has no --format before it", given.Text)
		default:
			list[len(list)-1].file = given.Text
			formatBefore = false
		}
	}
	if len(list) == 0 { // the default
		list = []output{{formats[0], "-"}}
	}
	return list, distinct(list)
}

// distinct returns an error if two outputs have the same file.
func distinct(list []output) error {
	formats := make(map[string]string)
	for _, o := range list {
		other, twice := formats[o.file]
		switch {
		case twice && o.file == "-":
			return usagef("--format %s and --format %s would both go to standard output: write an --output FILE behind one of them", other, o.format)
		case twice:
			return usagef("--format %s and --format %s would both go to %s", other, o.format, o.file)
		}
		formats[o.file] = o.format
	}
	return nil
}

// reported returns the entry of a tree in reports.
func reported(path string, checked *check.Result, warningsAsErrors bool) report.Tree {
	tree := report.Tree{Path: path, Findings: slices.Clone(checked.Diagnostics), WarningsAsErrors: warningsAsErrors}
	if path == "-" {
		tree.Path = diag.StandardInput
	}
	tree.Resources = func() (list []diag.Resource) {
		for _, r := range checked.Snapshot.All() {
			list = append(list, diag.Resource{Type: r.Type.URL(), Name: r.Name})
		}
		return list
	}
	return tree
}

// writeReports writes the findings to each output.
func writeReports(c *call, list []output, checked checkedTrees) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	codes, err := documented()
	if err != nil {
		return err
	}
	r := &report.Report{Version: buildVersion().program, Codes: codes, Root: root, Findings: checked.Diagnostics, Trees: checked.trees}
	if !checked.valid() {
		r.ExitStatus = exitRefused
	}
	for _, o := range list {
		if err := writeTo(reportWriter(c), o.file, func(w io.Writer) error { return writeReport(c, w, o, checked, r) }); err != nil {
			return err
		}
	}
	return nil
}

// writeReport writes the findings to w. Text for standard output may leave out findings and have colours; text
// for a file has all findings.
func writeReport(c *call, w io.Writer, o output, checked checkedTrees, r *report.Report) error {
	if i := slices.IndexFunc(report.Formats, func(f report.Format) bool { return f.Name == o.format }); i >= 0 {
		return report.Formats[i].Write(w, r)
	}
	if o.format == "json" && checked.variants != nil {
		return writeJSON(w, struct {
			Diagnostics diag.List       `json:"diagnostics"`
			Summary     diag.Summary    `json:"summary"`
			Variants    []variantsTable `json:"variants"`
		}{append(diag.List{}, checked.Diagnostics...), checked.Summary, checked.variants})
	}
	if o.format == "json" {
		return diag.WriteJSON(w, checked.Diagnostics, checked.Summary)
	}
	text := textOptions{alike: true}
	if o.file == "-" {
		text = textFor(c, reportWriter(c))
	}
	if err := errors.Join(writeText(w, shown(c, checked.Result, r.ExitStatus != exitOK), text), writeTables(w, checked.variants)); err != nil || c.Quiet.Value {
		return err
	}
	return writeSummary(w, checked.Summary)
}

// repositoryRoot returns the root of the git work tree around the current directory; outside of git, the
// current directory.
func repositoryRoot() (*report.Root, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if found := gitdir.Enclosing(dir); len(found) > 0 {
		dir = filepath.Dir(found[0])
	}
	return report.NewRoot(dir)
}

// writeTo writes to a file, or for - to standard output.
func writeTo(stdout io.Writer, output string, write func(io.Writer) error) error {
	if output == "-" {
		return write(stdout)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return writeWhole(output, b.Bytes())
}

// writeWhole writes data into a file. After an error a new file does not exist, and an existing regular file is
// unchanged if its folder permits replacing the file.
func writeWhole(name string, data []byte) error {
	file, err := filepath.EvalSymlinks(name)
	if err != nil { // the file does not exist yet
		return createWhole(name, data)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		err := replaceFile(file, data, info.Mode().Perm())
		// The folder may belong to somebody else, and the file may be a mount of its own.
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EBUSY) {
			return err
		}
	}
	return writeThrough(file, info.Mode(), data)
}

// writeThrough writes data to an existing file without replacing the file. A named pipe without a
// reader is an error: opening the pipe would wait for a reader for ever.
func writeThrough(file string, mode fs.FileMode, data []byte) error {
	flags := os.O_WRONLY | os.O_TRUNC
	if mode&fs.ModeNamedPipe != 0 {
		flags |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(file, flags, 0)
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%s is a named pipe that nobody reads: start its reader first", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// createWhole creates a file with data. After an error the file does not exist.
func createWhole(name string, data []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil { // a full disk may show only at Close
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
