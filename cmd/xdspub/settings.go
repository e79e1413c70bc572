package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/load"
)

// values are what the flags of a command say, completed by the settings file of
// a source tree: flags win, then the environment, then the file.
type values struct {
	c    *cli.Context
	file map[string]any // the settings that no flag and no variable overrides
}

// value is that of one flag. lookup is the context's for flags of its kind, such
// as c.String.
func value[T any](v values, name string, lookup func(string) T) T {
	if x, ok := v.file[name]; ok {
		return x.(T)
	}
	return lookup(name)
}

// trusted are the settings that say what is read, asked and written outside the source
// tree. The tree's own settings file can't say that: whoever may change the tree is
// not who runs this program.
var trusted = []string{"allow-path", "bootstrap", "out", "group", "envoy-admin", "envoy-log"}

// settings reads the settings file of a source tree, if there is one.
func settings(c *cli.Context, source string) (values, error) {
	v := values{c, map[string]any{}}
	name, ofTree := c.Path("config"), false
	read := load.Config
	if name == "" {
		name, ofTree = load.ConfigFile(source), true
		read = func(string) ([]load.Setting, diag.List, error) { return load.TreeConfig(source) }
	}
	list, findings, err := read(name)
	switch {
	case ofTree && errors.Is(err, fs.ErrNotExist):
		return v, nil
	case err != nil:
		return v, err
	}
	flags := slices.Concat(sourceFlags()[1:], publishFlags(), confirmFlags(), watchFlags()) // all but config itself
	for _, s := range list {
		x, wrong := parse(flags, s, filepath.Dir(name))
		if wrong == nil && ofTree && slices.Contains(trusted, s.Name) {
			wrong = fmt.Errorf("%s can't be set by the source tree itself: who changes the tree must not choose what is read or written beside it; use --%[1]s, %s, or --config %s", s.Name, env(s.Name)[0], name)
		}
		if wrong != nil {
			findings = append(findings, diag.Diagnostic{Position: s.Position, Message: wrong.Error()})
		} else if !c.IsSet(s.Name) {
			v.file[s.Name] = x
		}
	}
	if len(findings) > 0 {
		var text []string
		for _, f := range findings.Sort() {
			text = append(text, fmt.Sprintf("%s: %s", f.Position, f.Message))
		}
		return v, usagef("%s", strings.Join(text, "\n"))
	}
	return v, nil
}

// parse makes what a setting says the type of its flag. A file serves several
// commands, so it may have settings that this one has no flag for; they have to
// be right all the same.
func parse(flags []cli.Flag, s load.Setting, dir string) (any, error) {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return f.Names()[0] == s.Name })
	if i < 0 {
		return nil, fmt.Errorf("unknown setting %q: settings are named like flags of validate, render and watch", s.Name)
	}
	if _, ok := flags[i].(*cli.StringSliceFlag); ok {
		if s.Name == "allow-path" {
			for i, path := range s.Values {
				s.Values[i] = from(dir, path)
			}
		}
		return s.Values, nil
	}
	if len(s.Values) != 1 {
		return nil, fmt.Errorf("%s wants one value, not a list of %d", s.Name, len(s.Values))
	}
	text := s.Values[0]
	var x any = text
	var err error
	wanted := ""
	switch flags[i].(type) {
	case *cli.PathFlag: // a path in a file is seen from there
		x = from(dir, text)
	case *cli.BoolFlag:
		x, err = strconv.ParseBool(text)
		wanted = "true or false"
	case *cli.IntFlag:
		x, err = strconv.Atoi(text)
		wanted = "a number"
	case *cli.DurationFlag:
		x, err = time.ParseDuration(text)
		wanted = "a time such as 90s or 10m"
	}
	if err != nil {
		return nil, fmt.Errorf("%s wants %s, not %q", s.Name, wanted, text)
	}
	return x, nil
}

// from returns a path as seen from a folder.
func from(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
