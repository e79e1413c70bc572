package load_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/source/settingsfile"
)

// brief returns findings as lines, without folders.
func brief(list diag.List) string {
	var lines []string
	for _, d := range list {
		d.File = filepath.Base(d.File)
		lines = append(lines, d.Position.String()+": "+d.Message+" ["+d.Code+"]")
	}
	return strings.Join(lines, "\n")
}

// written returns a value as text, with the places of its keys.
func written(v settingsfile.Value) string {
	var parts []string
	for _, p := range v.Parts {
		text := written(p)
		if v.Kind == settingsfile.Mapping {
			text = fmt.Sprintf("%s@%d:%d=%s", p.Key, p.Position.Line, p.Position.Column, text)
		}
		parts = append(parts, text)
	}
	switch v.Kind {
	case settingsfile.List:
		return strings.Join(parts, ",")
	case settingsfile.Mapping:
		return "{" + strings.Join(parts, " ") + "}"
	}
	return v.Text
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    []string // NAME=VALUE,… LINE:COLUMN
		finding string
	}{
		"settings": {"# a comment\ninotify-budget: 1000000\nignore: [ci, '*.tmpl']\nallow-empty: yes\n", []string{"inotify-budget=1000000 2:1", "ignore=ci,*.tmpl 3:1", "allow-empty=true 4:1"}, ""},
		"float":    {"a: 1.5", []string{"a=1.5 1:1"}, ""},
		"empty":    {"# nothing\n", nil, ""},
		"null":     {"---\n", nil, "xdspub.yaml:1:1: the settings file has no setting, and may be half written: write a setting or a comment, or delete the file [invalid-value]"},
		"bom":      {"\ufeffa: b\n", []string{"a=b 1:1"}, ""},
		"object":   {"a: {c: [d, {e: 1}],\n b: off}\n", []string{"a={c@1:5=d,{e@1:13=1} b@2:2=false} 1:1"}, ""},
		"deep":     {"a: [[[[[[[[[[1]]]]]]]]]]\n", nil, "xdspub.yaml:1:12: a: a setting has a text, a number or a boolean, or a list of these [invalid-value]"},
		"nothing":  {"a:\n", nil, "xdspub.yaml:1:3: a: a setting has a text, a number or a boolean, or a list of these [invalid-value]"},
		"list":     {"- a\n", nil, "xdspub.yaml:1:1: a settings file has one setting a line, such as eds: inline [invalid-value]"},
		"twice":    {"a: 1\na: 2\n", nil, `xdspub.yaml:2:1: key "a" is set twice in one mapping [duplicate-key]`},
		"syntax":   {"a: [\n", nil, "xdspub.yaml:1:4: this [ is not closed [invalid-syntax]"},
		"utf8":     {"a: \xff\n", nil, "xdspub.yaml:1:4: byte 0xff is not valid UTF-8 [invalid-utf8]"},
		"two":      {"a: 1\n---\nb: 1\n", nil, "xdspub.yaml:2:1: a settings file has one document, and here a second one begins [unknown-document]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "xdspub.yaml", c.content)
			settings, findings, err := load.Config(settingsfile.PathIn(dir))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range settings {
				p := s.Position
				p.File = ""
				got = append(got, s.Key+"="+written(s.Value)+" "+strings.TrimPrefix(p.String(), ":"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.finding, brief(findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	if _, _, err := load.Config(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file was read")
	}
}

func TestBootstrap(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		node    string // the id of the node; empty if it could not be read
		finding string
	}{
		"a.yaml":        {"node: {id: one}\nstatic_resources: {clusters: [{name: c}]}\n", "one", ""},
		"a.json":        {"{\n\t\"node\": {\"id\": \"one\"}\n}", "one", ""},
		"typed.yaml":    {"\"@type\": type.googleapis.com/envoy.config.bootstrap.v3.Bootstrap\nnode: {id: one}\n", "one", `typed.yaml:1:10: unknown field "@type": a bootstrap has none, and Envoy does not start [unknown-field]`},
		"field.yaml":    {"node: {id: one}\nstatic_resources: {clusters: [{nme: c}]}\n", "one", `field.yaml:2:32: unknown field "nme" [unknown-field]`},
		"syntax.yaml":   {"node: {\n", "", "syntax.yaml:1:7: this { is not closed [invalid-syntax]"},
		"two.yaml":      {"node: {id: one}\n---\nnode: {id: m}\n", "one", "two.yaml:2:1: Envoy reads the first document of a file only: this one is lost [read-otherwise]"},
		"two.json":      {"{\"node\": {\"id\": \"one\"}}\n{}\n", "", "two.json:2:1: a second document follows the first [invalid-syntax]"},
		"empty.yaml":    {"", "", "empty.yaml:1:1: the file has no content: Envoy does not start with it [empty-file]"},
		"twice.json":    {`{"node": {}, "node": {}}`, "", `twice.json:1:14: key "node" is set twice in one object [duplicate-key]`},
		"pair.json":     {`{"node": {"id": "\ud83d\ude00"}}`, "\U0001f600", ""},
		"text.pb_text":  {"node { id: 'one' }", "one", ""},
		"field.pb_text": {"node {\n  id: 'one' idd: 'two'\n}", "one", `field.pb_text:2:13: unknown field "idd" [unknown-field]`},
		"binary.pb":     {"\n\x05\n\x03one", "one", ""},
		"broken.pb":     {"\n\x05\n\x07one", "", "broken.pb: not a binary Bootstrap [invalid-syntax]"},
		"utf8.yaml":     {"node: \xff", "", "utf8.yaml:1:7: byte 0xff is not valid UTF-8 [invalid-utf8]"},
		"alias.yaml":    {"a: &a {b: *a}\n", "", "alias.yaml:1:11: the aliases of this document expand to more than 134217728 bytes [too-large]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, name, c.content)
			b, findings, err := load.Bootstrap(filepath.Join(dir, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.GetNode().GetId(); got != c.node {
				t.Errorf("node %q, want %q", got, c.node)
			}
			if diff := cmp.Diff(c.finding, brief(findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	if _, _, err := load.Bootstrap(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a missing file was read")
	}
}
