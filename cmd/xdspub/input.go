package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// stdinFormatUsed returns an error if --stdin-format is given and no argument is -.
func stdinFormatUsed(c *call) error {
	if c.StdinFormat.Given() && !slices.Contains(c.Args().Slice(), "-") {
		return usagef("--stdin-format %s is for standard input, and no path is -: the suffix of a file tells its format", c.StdinFormat.Value)
	}
	return nil
}

// standardInput reads standard input, in the format of --stdin-format.
func standardInput(c *call) (load.Input, error) {
	in := load.Input{Name: diag.StandardInput, Format: c.StdinFormat.Value}
	if err := c.StdinFormat.Check(); err != nil {
		return in, err
	}
	data, err := readStandardInput(c)
	in.Data = data
	return in, err
}

// standardInput reads standard input once, and returns its text with the fixes so far.
func (v *validation) standardInput() (load.Input, error) {
	if v.stdin == nil {
		in, err := standardInput(v.call)
		if err != nil {
			return in, err
		}
		v.stdin = &in
		if v.fixes != nil {
			v.fixes.Add(in.Name, in.Data)
		}
	}
	in := *v.stdin
	if v.fixes != nil {
		in.Data = v.fixes.Text(in.Name)
	}
	return in, nil
}

func readStandardInput(c *call) ([]byte, error) {
	// The extra byte reveals an input above the limit.
	data, err := io.ReadAll(io.LimitReader(c.App.Reader, syntax.MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read standard input: %w", err)
	case len(data) > syntax.MaxBytes:
		return nil, fmt.Errorf("standard input is larger than the limit of %d bytes", syntax.MaxBytes)
	}
	return data, nil
}

// unsaved is the text of a file of a source tree, read from standard input.
type unsaved struct {
	path string // empty for none
	text []byte
	used bool // inTree has put the text into a tree
	// leftOut is a tree that holds the file and does not read it, because the file is hidden or ignored; empty
	// for none.
	leftOut string
	// followed is a bootstrap among the arguments; empty for none.
	followed string
}

// readUnsaved reads standard input for --stdin-filename.
func readUnsaved(c *call) (unsaved, error) {
	path := c.StdinFilename.Value
	if !c.StdinFilename.Given() {
		return unsaved{}, nil
	}
	info, err := os.Stat(path)
	switch {
	case path == "":
		return unsaved{}, usagef("--stdin-filename is empty")
	case slices.Contains(c.Args().Slice(), "-"):
		return unsaved{}, usagef("--stdin-filename %s reads standard input, and so does the path -: give only one of them", path)
	case err == nil && !info.Mode().IsRegular():
		return unsaved{}, usagef("--stdin-filename %s is not a file", path)
	case load.Hidden(filepath.Base(path)):
		return unsaved{}, usagef("--stdin-filename %s: xdspub never reads a file of this name as resources", path)
	}
	text, err := readStandardInput(c)
	return unsaved{path: path, text: text}, err
}

// inTree makes a check read the text instead of the file, if the source tree has the file.
func (u *unsaved) inTree(o *check.Options) error {
	switch {
	case u.path == "":
	case fspath.Resolve(u.path) == fspath.Resolve(settingsfile.PathIn(o.Path)):
		return usagef("--stdin-filename %s is the settings file of the source tree, which is read from the disk: save the file", u.path)
	case o.Bootstrap != "" && load.Contains(o.Bootstrap, nil, u.path):
		return usagef("--stdin-filename %s is the file of --bootstrap %s, which is read from the disk: save the file, or give "+
			"only one of them", u.path, o.Bootstrap)
	case load.LeftOut(o.Path, o.Ignore, u.path):
		u.leftOut = o.Path
	case load.Contains(o.Path, o.Allow, u.path):
		o.Overlay = map[string][]byte{u.path: u.text}
		u.used = true
	}
	return nil
}

// inBootstrap returns an error if the unsaved file belongs to the bootstrap at path.
func (u *unsaved) inBootstrap(path string) error {
	if u.path == "" {
		return nil
	}
	u.followed = path
	if load.Contains(path, nil, u.path) {
		return u.beside(path)
	}
	return nil
}

// unused returns an error if no tree holds the file. If a tree holds the file and does not read it, unused only
// prints a note, because an editor asks about any open file.
func (u *unsaved) unused(w io.Writer, paths []string) error {
	switch {
	case u.path == "" || u.used:
		return nil
	case u.leftOut != "":
		fmt.Fprintf(w, "xdspub: %s is not part of the source tree %s, since it is hidden or ignored: its text is not checked\n", u.path, u.leftOut)
		return nil
	case u.followed != "":
		return u.beside(u.followed)
	}
	return usagef("--stdin-filename %s is not in a source tree that is checked: %s", u.path, strings.Join(paths, ", "))
}

func (u *unsaved) beside(bootstrap string) error {
	return usagef("--stdin-filename %s is for a file of a source tree, and %s is a bootstrap, whose files are read from the disk: "+
		"save the file, and leave --stdin-filename out", u.path, bootstrap)
}
