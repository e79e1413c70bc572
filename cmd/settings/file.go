package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/source/settingsfile"
)

// file is a settings file.
type file struct {
	name, dir string
	source    string // the source tree of the command
	ofTree    bool   // the file belongs to the tree: its author may be another person than the program's user
}

// fileOf returns the settings file for a source tree: the file of --config if given, otherwise xdspub.yaml in
// the tree.
func (s *Settings) fileOf(source string) file {
	f := file{name: s.Config.Value, source: source}
	if f.name == "" {
		f.name, f.ofTree = settingsfile.PathIn(source), true
	}
	f.dir = filepath.Dir(f.name)
	return f
}

// WithFile returns a copy of s with the values of the settings file for a source tree: the file of --config if
// given, otherwise xdspub.yaml in the tree, which may be missing. Options and variables win over the file. The
// copy has no values of a file that an earlier WithFile read. WithFile also reads the types of
// --descriptor-set. After an error in the contents of a file, which is a *UsageError, the copy has the other
// values.
func (s *Settings) WithFile(source string) (*Settings, error) {
	if s.given != nil {
		s = s.given
	}
	of := *s
	of.given = s
	var err error
	if s.Config.Value != "" || !IsRemote(source) {
		err = of.read(s.fileOf(source))
	}
	if err == nil {
		err = of.readTypes()
	}
	return &of, err
}

// read sets the settings that a settings file has, except given ones.
func (s *Settings) read(f file) error {
	if other := misnamed(f.source); f.ofTree && other != "" {
		return usagef("%s: rename it to %s, the only name of the settings file", other, filepath.Base(f.name))
	}
	list, wrong, err := f.settings()
	switch {
	case f.ofTree && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !f.ofTree:
		return fmt.Errorf("read the file of --config: %w", err)
	case err != nil:
		return err
	}
	if f.ofTree {
		s.tree = f.source
	}
	r := fileReader{settings: s, file: f, rows: Settable(), findings: findings{wrong}}
	for _, in := range list {
		r.read(in)
	}
	if len(r.wrong) == 0 {
		return nil
	}
	var text []string
	for _, f := range r.wrong.Sort() {
		text = append(text, fmt.Sprintf("%s: %s", f.Position, f.Message))
	}
	return usagef("%s", strings.Join(text, "\n"))
}

func (f file) settings() ([]settingsfile.Setting, diag.List, error) {
	if f.ofTree {
		return load.TreeConfig(f.source)
	}
	return load.Config(f.name)
}

// isOfTree reports whether the file of --config is the tree's own settings file, which the loader reads too.
func (f file) isOfTree() bool {
	own := settingsfile.PathIn(f.source)
	return fspath.Resolve(f.name) == fspath.Resolve(own) && load.Contains(f.source, nil, f.name)
}

// misnamed returns the path of xdspub.yml at the root of a source tree; empty if there is no such file.
func misnamed(source string) string {
	other := strings.TrimSuffix(settingsfile.PathIn(source), ".yaml") + ".yml"
	if _, err := os.Lstat(other); err != nil {
		return ""
	}
	return other
}

// findings collects the faults of a settings file.
type findings struct{ wrong diag.List }

func (r *findings) fail(at diag.Position, format string, args ...any) {
	r.wrong = append(r.wrong, diag.Diagnostic{Position: at, Message: fmt.Sprintf(format, args...)})
}

// fileReader reads a settings file. Several commands share the file, so fileReader also checks the settings
// that this command does not use.
type fileReader struct {
	findings
	settings *Settings
	file     file
	rows     []Row
}

// section is a setting that only a settings file can have. No option sets it, because its value is not a text.
type section struct {
	name   string
	read   func(*fileReader, settingsfile.Setting)
	same   func(a, b *Settings) bool
	schema func() Schema
}

// sections returns all sections.
func sections() []section {
	return []section{
		{
			rulesSection, (*fileReader).readSeverities,
			func(a, b *Settings) bool { return reflect.DeepEqual(a.Severities.Value, b.Severities.Value) }, severitiesSchema,
		},
		{
			overridesSection, (*fileReader).readOverrides,
			func(a, b *Settings) bool { return reflect.DeepEqual(a.Overrides.Value, b.Overrides.Value) }, overridesSchema,
		},
		{
			targetsSection, (*fileReader).readTargets,
			func(a, b *Settings) bool { return slices.EqualFunc(a.Targets.Value, b.Targets.Value, Target.same) }, targetsSchema,
		},
		{
			freezeSection, (*fileReader).readFreeze,
			func(a, b *Settings) bool { return a.Freeze.Value.Equal(b.Freeze.Value) }, freezeSchema,
		},
		{
			ownersSection, (*fileReader).readOwners,
			func(a, b *Settings) bool { return slices.Equal(a.Owners.Value, b.Owners.Value) }, ownersSchema,
		},
		{
			rolloutSection, (*fileReader).readRollout,
			func(a, b *Settings) bool { return reflect.DeepEqual(a.Rollout.Value, b.Rollout.Value) }, rolloutSchema,
		},
		{settingsfile.When, (*fileReader).readWhen, func(_, _ *Settings) bool { return true }, whenSchema}, // package load reads it
	}
}

func sameSections(a, b *Settings) bool {
	return !slices.ContainsFunc(sections(), func(s section) bool { return !s.same(a, b) })
}

// SectionNames returns the names of the settings that only a file has.
func SectionNames() (names []string) {
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

func (r *fileReader) read(in settingsfile.Setting) {
	for _, s := range sections() {
		if s.name == in.Key {
			s.read(r, in)
			return
		}
	}
	i := slices.IndexFunc(r.rows, func(row Row) bool { return row.Name() == in.Key })
	if i < 0 {
		r.unknown(in)
		return
	}
	if err := r.rows[i].readFile(r.settings, in, r.file); err != nil {
		r.fail(placeOf(in, err), "%s", err)
	}
}

// unknownKey returns the message that a mapping can't have a key. where names the mapping, such as "of a window". has
// lists the keys in words.
func unknownKey(key, where string, keys []string, has string) string {
	meant := "it has " + has
	if near := Nearest(keys, key); near != "" {
		meant = "did you mean " + near + "?"
	}
	return fmt.Sprintf("unknown setting %q %s: %s", diag.ClipLine(key, 60), where, meant)
}

func (r *fileReader) unknown(in settingsfile.Setting) {
	if meant := Nearest(append(Names(r.rows), SectionNames()...), in.Key); meant != "" {
		r.fail(in.Position, "unknown setting %q: did you mean %s?", in.Key, meant)
		return
	}
	r.fail(in.Position, "unknown setting %q: a setting has the name of an option of validate, render, watch or serve, without the dashes", in.Key)
}

// readWhen reads nothing, because package load reads when. readWhen rejects a when that is not in the settings
// file of the tree.
func (r *fileReader) readWhen(in settingsfile.Setting) {
	if !r.file.ofTree && !r.file.isOfTree() {
		r.fail(in.Position, "when selects the clients of the files in its folder: move it from the file of --config to the xdspub.yaml of the source tree")
	}
}

// placeOf returns the position of the part of a setting that the error is about.
func placeOf(s settingsfile.Setting, wrong error) diag.Position {
	form := errors.Is(wrong, settingsfile.ErrForm)
	notText := func(item settingsfile.Value) bool { return item.Kind != settingsfile.Text }
	i := slices.IndexFunc(s.Parts, notText)
	switch {
	case form && s.Kind == settingsfile.List && i >= 0:
		return s.Parts[i].Position
	case form:
		return s.ValueAt
	case s.Kind == settingsfile.List && len(s.Parts) == 1:
		return s.Parts[0].Position
	}
	return s.Position
}
