// Package settingsfile reads xdspub.yaml: the settings of the program at the root of a source tree, and the
// rules about clients in any folder.
package settingsfile

import (
	"fmt"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/source/syntax"
)

// Setting is an entry of a settings file. Its Key is the name of a flag, or of a setting without a flag.
type Setting struct {
	Value
	// ValueAt is the position of the value.
	ValueAt diag.Position
}

// Places returns the positions of the values in a list, or the position of a single value; nil without
// values.
func (s Setting) Places() (places []diag.Position) {
	if s.Kind != List && s.Key != "" {
		return []diag.Position{s.ValueAt}
	}
	for _, item := range s.Parts {
		places = append(places, item.Position)
	}
	return places
}

// PathIn returns the path of a source tree's settings file.
func PathIn(root string) string { return filepath.Join(root, FileName) }

// Read returns the settings in the text of a settings file, with findings.
func Read(s *syntax.Text) ([]Setting, diag.List) {
	findings := diag.NewBounded(syntax.MaxFindings)
	list := func() diag.List { return findings.List(diag.Position{File: s.Name}, "in this file") }
	if f, is := s.NotUTF8(); is {
		findings.Add(f)
		return nil, list()
	}
	doc, members, ok := settingsDocument(s, findings.Add)
	if ok && isEmpty(s, members) {
		findings.Add(empty(s))
		ok = false
	}
	if !ok {
		return nil, list()
	}
	var settings []Setting
	for name, raw := range members {
		if name == When { // ReadFolder reads this member
			at := doc.RangeOf([]string{name}, true).Position
			settings = append(settings, Setting{Value{Key: name, Position: at}, at})
			continue
		}
		v, err := settingValue(doc, raw, []string{name})
		if err != nil {
			findings.Add(s.Finding(syntax.CodeInvalidValue, diag.Range{Position: v.Position}, fmt.Sprintf("%s: %v", name, err), ""))
			continue
		}
		at := v.Position
		v.Key, v.Position = name, doc.RangeOf([]string{name}, true).Position
		settings = append(settings, Setting{v, at})
	}
	slices.SortFunc(settings, func(a, b Setting) int { return a.Position.Compare(b.Position) })
	return settings, list().Sort()
}

// FileName is the name of settings files, at the root of a source tree and in its folders.
const FileName = "xdspub.yaml"
