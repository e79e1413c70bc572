package load

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/source/syntax"
)

// Setting is one entry of a settings file. Its Key is the name of a flag, or of a setting that has
// none.
type Setting struct {
	SettingValue
	// ValueAt is where the value stands.
	ValueAt diag.Position
}

// Places returns where each of the values of a list stands, or the only one; nil where there is none.
func (s Setting) Places() (places []diag.Position) {
	if s.Kind != SettingList && s.Key != "" {
		return []diag.Position{s.ValueAt}
	}
	for _, item := range s.Parts {
		places = append(places, item.Position)
	}
	return places
}

// ConfigFile returns the path of the settings file of a source tree, xdspub.yaml.
func ConfigFile(root string) string { return filepath.Join(root, configName) }

// settingsIn returns the settings in the text of a settings file, and what is wrong in it.
func settingsIn(s *syntax.Text) ([]Setting, diag.List) {
	findings := diag.NewBounded(syntax.MaxFindings)
	list := func() diag.List { return findings.List(diag.Position{File: s.Name}, "in this file") }
	if f, is := s.NotUTF8(); is {
		findings.Add(f)
		return nil, list()
	}
	doc, members, ok := settingsDocument(s, findings.Add)
	if !ok {
		return nil, list()
	}
	var settings []Setting
	for name, raw := range members {
		if name == WhenSetting { // a Loader reads it
			at := doc.RangeOf([]string{name}, true).Position
			settings = append(settings, Setting{SettingValue{Key: name, Position: at}, at})
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

// settingsDocument returns the only document of a settings file, and what it has by name; nil where the
// file is empty. It is not ok where it can't be read.
func settingsDocument(s *syntax.Text, report func(...diag.Diagnostic)) (doc *syntax.Document, members map[string]json.RawMessage, ok bool) {
	docs := s.Documents()
	switch len(docs) {
	case 0:
		if at := directiveIn(s.Data()); at >= 0 {
			report(s.Finding(syntax.CodeSyntax, s.Point(at), "a line that begins with % is a directive of YAML, and no document follows", ""))
			return nil, nil, false
		}
		return nil, nil, true
	case 1:
	default:
		report(s.Finding(syntax.CodeUnknownDocument, docs[1].Point(0), "a settings file has one document, and here a second one begins", ""))
		return nil, nil, false
	}
	doc = docs[0]
	text, findings := doc.AsYAML().ToJSON()
	report(findings...)
	if len(findings) > 0 {
		return nil, nil, false
	}
	if members, ok = syntax.ObjectOf(text); !ok {
		report(s.Finding(syntax.CodeInvalidValue, s.Point(0), "a settings file has one setting a line, such as eds: inline", ""))
	}
	return doc, members, ok
}

// directiveIn returns where the first line begins that is a directive of YAML; -1 for none.
func directiveIn(text []byte) int {
	for at := 0; at < len(text); at += syntax.YAMLLine(text[at:]) {
		if text[at] == '%' {
			return at
		}
	}
	return -1
}

// configName is the project's own file, at the root of a tree and in its folders.
const configName = "xdspub.yaml"
