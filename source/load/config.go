package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/internal/safefile"
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

// maxConfig bounds the project's own file.
const maxConfig = 1 << 20

// ConfigFile returns the path of the settings file of a source tree, xdspub.yaml.
func ConfigFile(root string) string { return filepath.Join(root, configName) }

// Config reads a settings file: a mapping of names to values. It returns the settings in the order
// in which they stand, WhenSetting without its value, and findings about what is wrong in the file. An error means that the file
// can't be read.
func Config(path string) ([]Setting, diag.List, error) {
	data, err := safefile.Read(path, maxConfig)
	if err != nil {
		return nil, nil, err
	}
	settings, list := config(newSource(path, syntax.YAML, data))
	return settings, list, nil
}

// OnlyWhen reports whether a path is that of a settings file that holds nothing but WhenSetting, as those of
// folders below the root of a tree do.
func OnlyWhen(path string) bool {
	settings, list, err := Config(path)
	return err == nil && len(list) == 0 && len(settings) == 1 && settings[0].Key == WhenSetting
}

// TreeConfig returns Config for the file at the root of a source tree, without following links
// out of the tree. A tree that is one file has no settings.
func TreeConfig(root string) ([]Setting, diag.List, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, nil, err
	}
	t, err := openTree(root, nil)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	read, err := t.read(ConfigFile(root), maxConfig)
	if _, outside := errors.AsType[*OutsideError](err); outside {
		err = fmt.Errorf("read %s: %w: name it by --config where you trust it", ConfigFile(root), err)
	}
	if err != nil {
		return nil, nil, err
	}
	settings, list := config(newSource(ConfigFile(root), syntax.YAML, read.data))
	return settings, list, nil
}

func config(s *source) ([]Setting, diag.List) {
	d := decoder{file: newFile(s)}
	if d.invalidUTF8() {
		return nil, d.file.diagnostics()
	}
	doc, members, ok := d.settingsDocument()
	if !ok {
		return nil, d.file.diagnostics()
	}
	var settings []Setting
	for name, raw := range members {
		if name == WhenSetting { // a Loader reads it
			at := doc.RangeOf([]string{name}, true).Position
			settings = append(settings, Setting{SettingValue{Key: name, Position: at}, at})
			continue
		}
		v, err := doc.settingValue(raw, []string{name})
		if err != nil {
			d.report(s.Finding(syntax.CodeInvalidValue, diag.Range{Position: v.Position}, fmt.Sprintf("%s: %v", name, err), ""))
			continue
		}
		at := v.Position
		v.Key, v.Position = name, doc.RangeOf([]string{name}, true).Position
		settings = append(settings, Setting{v, at})
	}
	slices.SortFunc(settings, func(a, b Setting) int { return a.Position.Compare(b.Position) })
	return settings, d.file.diagnostics().Sort()
}

// settingsDocument returns the only document of a settings file, and what it has by name; nil where the
// file is empty. It is not ok where it can't be read.
func (d *decoder) settingsDocument() (doc *document, members map[string]json.RawMessage, ok bool) {
	s := d.file.source
	docs := s.documents()
	switch len(docs) {
	case 0:
		if at := directiveIn(s.Data()); at >= 0 {
			d.report(s.Finding(syntax.CodeSyntax, s.Point(at), "a line that begins with % is a directive of YAML, and no document follows", ""))
			return nil, nil, false
		}
		return nil, nil, true
	case 1:
	default:
		d.report(s.Finding(syntax.CodeUnknownDocument, docs[1].Point(0), "a settings file has one document, and here a second one begins", ""))
		return nil, nil, false
	}
	doc = docs[0]
	text, findings := doc.AsYAML().ToJSON()
	d.report(findings...)
	if len(findings) > 0 {
		return nil, nil, false
	}
	if members, ok = syntax.ObjectOf(text); !ok {
		d.report(s.Finding(syntax.CodeInvalidValue, s.Point(0), "a settings file has one setting a line, such as eds: inline", ""))
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
