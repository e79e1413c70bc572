package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/load"
)

// trusted are the settings that say what is read, asked and written outside the source
// tree. The tree's own settings file can't say that: whoever may change the tree is
// not who runs this program.
var trusted = []string{"allow-path", "bootstrap", "out", "group", "grpc", "http", "tls-cert", "tls-key", "client-ca", "allow-node", "allow-param", "allow-status", "insecure", "limit", "max-client-memory", "envoy-admin", "envoy-log"}

// settings reads the settings file of a source tree, if there is one.
func settings(c *cli.Context, source string) (values, error) {
	v, err := settingsFile(c, source)
	if err == nil {
		v.own, err = readOwnTypes(v)
	}
	return v, err
}

// settingsFile is settings without what other files say.
func settingsFile(c *cli.Context, source string) (values, error) {
	v := values{c: c, file: map[string]any{}, at: map[string]load.Setting{}}
	name, ofTree := c.Path("config"), false
	read := load.Config
	if name == "" {
		name, ofTree = load.ConfigFile(source), true
		read = func(string) ([]load.Setting, diag.List, error) { return load.TreeConfig(source) }
	}
	if other := misnamed(source); ofTree && other != "" {
		return v, usagef("%s: rename it to %s, the only name of the settings file", other, filepath.Base(name))
	}
	list, findings, err := read(name)
	switch {
	case ofTree && errors.Is(err, fs.ErrNotExist):
		return v, nil
	case err != nil && !ofTree:
		return v, fmt.Errorf("read the file of --config: %w", err)
	case err != nil:
		return v, err
	}
	if ofTree {
		v.tree = source
	}
	flags := settingFlags()
	for _, s := range list {
		if s.Key == load.WhenSetting { // a loader reads it
			if !ofTree && !isOfTree(name, source) {
				findings = append(findings, diag.Diagnostic{Position: s.Position, Message: "when is about the files around it: move it from the file of --config to the xdspub.yaml of the source tree"})
			}
			continue
		}
		if slices.Contains(withoutFlag, s.Key) {
			x, wrong := settingWithoutFlag(s, filepath.Dir(name), ofTree)
			findings = append(findings, wrong...)
			v.file[s.Key], v.at[s.Key] = x, s
			continue
		}
		x, wrong := setting(flags, s, filepath.Dir(name))
		if wrong == nil && ofTree && slices.Contains(trusted, s.Key) {
			wrong = fmt.Errorf("%s can't be set in the source tree: whoever changes the tree must not decide what is read or written outside of it; use --%[1]s, %s, or --config %s", s.Key, env(s.Key)[0], name)
		}
		if wants := wants(s.Key, x); wrong == nil && wants != "" && !c.IsSet(s.Key) {
			texts, _ := s.Texts()
			wrong = fmt.Errorf("invalid %s %q: %s", s.Key, texts[0], wants)
		}
		if wrong != nil {
			findings = append(findings, diag.Diagnostic{Position: placeOf(s, wrong), Message: wrong.Error()})
		} else if !c.IsSet(s.Key) {
			v.file[s.Key], v.at[s.Key] = x, s
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

// withoutFlag are the settings that no flag has.
var withoutFlag = []string{rulesSetting, overridesSetting, targetsSetting, load.WhenSetting}

// settingWithoutFlag reads one of these. It returns what is wrong in it.
func settingWithoutFlag(s load.Setting, dir string, ofTree bool) (any, diag.List) {
	if s.Key == targetsSetting {
		return readTargets(s, dir, ofTree)
	}
	return severities(s)
}

// isOfTree reports whether the file of --config is the tree's own settings file, which the loader reads too.
func isOfTree(name, source string) bool {
	return fspath.Resolve(name) == fspath.Resolve(load.ConfigFile(source)) && load.Contains(source, nil, name)
}

// settingFlags are the flags that a settings file can set: all but config itself.
func settingFlags() []cli.Flag {
	return slices.Concat(sourceFlags()[1:], publishFlags(), serveFlags(), confirmFlags(), watchFlags(), []cli.Flag{allOrNothingFlag()})
}

// placeOf returns where the part of a setting stands that is wrong.
func placeOf(s load.Setting, wrong error) diag.Position {
	form := errors.Is(wrong, load.ErrSettingForm)
	notText := func(item load.SettingValue) bool { return item.Kind != load.SettingText }
	i := slices.IndexFunc(s.Parts, notText)
	switch {
	case form && s.Kind == load.SettingList && i >= 0:
		return s.Parts[i].Position
	case form:
		return s.ValueAt
	case s.Kind == load.SettingList && len(s.Parts) == 1:
		return s.Parts[0].Position
	}
	return s.Position
}

// misnamed returns the file at the root of a tree that has the settings file's name but for the
// suffix, or "".
func misnamed(source string) string {
	other := strings.TrimSuffix(load.ConfigFile(source), ".yaml") + ".yml"
	if _, err := os.Lstat(other); err != nil {
		return ""
	}
	return other
}

// setting makes what a setting says the type of its flag. A file serves several commands, so it
// may have settings that this one has no flag for; they have to be valid all the same.
func setting(flags []cli.Flag, s load.Setting, dir string) (any, error) {
	names := flagNames(flags)
	i := slices.Index(names, s.Key)
	if i < 0 {
		if meant := nearest(append(names, withoutFlag...), s.Key); meant != "" {
			return nil, fmt.Errorf("unknown setting %q: did you mean %s?", s.Key, meant)
		}
		return nil, fmt.Errorf("unknown setting %q: a setting has the name of an option of validate, render, watch or serve, without the dashes", s.Key)
	}
	texts, ok := s.Texts()
	if !ok {
		return nil, fmt.Errorf("%s: %w", s.Key, load.ErrSettingForm)
	}
	if _, ok := flags[i].(*cli.StringSliceFlag); ok {
		if of := placeholder(flags[i]); of == "FILE" || of == "DIR" {
			for i, path := range texts {
				texts[i] = from(dir, path)
			}
		}
		return texts, nil
	}
	if len(texts) != 1 {
		return nil, fmt.Errorf("%s takes one value, and this is a list of %d", s.Key, len(texts))
	}
	x, err := parse(flags[i], texts[0])
	if err != nil {
		return nil, fmt.Errorf("invalid %s %q: %w", s.Key, texts[0], err)
	}
	if _, isPath := flags[i].(*cli.PathFlag); isPath { // as seen from the file
		x = from(dir, texts[0])
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
