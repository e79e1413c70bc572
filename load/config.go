package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/safefile"
)

// Setting is one entry of a settings file: the name of a flag, its values, and the place of the
// name.
type Setting struct {
	Name     string
	Values   []string
	Position diag.Position
}

// maxConfig bounds the project's own file.
const maxConfig = 1 << 20

// ConfigFile returns the path of the settings file of a source tree, xdspub.yaml.
func ConfigFile(root string) string { return filepath.Join(root, configName) }

// Config reads a settings file: a mapping of flag names to values or lists of values. It returns
// the settings in the order in which they stand, and findings about what is wrong in the file. An
// error means that the file can't be read.
func Config(path string) ([]Setting, diag.List, error) {
	data, err := safefile.Read(path, maxConfig)
	if err != nil {
		return nil, nil, err
	}
	settings, list := config(newSource(path, formatYAML, data))
	return settings, list, nil
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
	settings, list := config(newSource(ConfigFile(root), formatYAML, read.data))
	return settings, list, nil
}

func config(s *source) ([]Setting, diag.List) {
	d := decoder{file: newFile(s)}
	if d.invalidUTF8() {
		return nil, d.file.diagnostics()
	}
	docs := s.split(s.content())
	switch len(docs) {
	case 0:
		return nil, nil
	case 1:
	default:
		d.report(s.finding(codeUnknownDocument, docs[1].point(0), "a settings file has one document, and here a second one begins", ""))
		return nil, d.file.diagnostics()
	}
	doc := docs[0]
	text, findings := doc.toJSON()
	if len(findings) > 0 {
		return nil, findings
	}
	members, ok := objectOf(text)
	if !ok {
		d.report(s.finding(codeInvalidValue, s.point(0), "a settings file has one setting a line, such as eds: inline", ""))
		return nil, d.file.diagnostics()
	}
	var settings []Setting
	for name, raw := range members {
		values, err := settingValues(raw)
		if err != nil {
			d.report(s.finding(codeInvalidValue, doc.rangeOf([]string{name}, false), fmt.Sprintf("%s: %v", name, err), ""))
			continue
		}
		settings = append(settings, Setting{name, values, doc.rangeOf([]string{name}, true).Position})
	}
	slices.SortFunc(settings, func(a, b Setting) int { return a.Position.Compare(b.Position) })
	return settings, d.file.diagnostics().Sort()
}

func settingValues(raw json.RawMessage) ([]string, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a float would print 1000000 as 1e+06
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var values []string
	for _, v := range list {
		switch v.(type) {
		case string, bool, json.Number:
			values = append(values, fmt.Sprint(v))
		default:
			return nil, errors.New("a setting has a text, a number or a boolean, or a list of these")
		}
	}
	return values, nil
}
