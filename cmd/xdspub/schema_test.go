package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"xdspub/cmd/settings"
	"xdspub/source/settingsfile"
)

// compiled returns the schema of settings files, compiled by a library.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	var b bytes.Buffer
	if err := writeSchema(&b); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("xdspub.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("xdspub.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bySchema returns the error of the schema about a settings file.
func bySchema(s *jsonschema.Schema, text string) error {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// byReader returns the error of a command about a settings file, or "".
func byReader(t *testing.T, text string) string {
	t.Helper()
	src := t.TempDir()
	config := settingsfile.PathIn(src)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if status := run([]string{"xdspub", "validate", "--config", config, src}, &out, &errs); status == exitUsage {
		return errs.String()
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "[invalid-when]") && !strings.Contains(line, "matches no resource file") { // the tree has none
			return line
		}
	}
	return ""
}

// TestSchemaHasAllSettings checks that the schema has each setting, with the description and the default that
// an editor shows.
func TestSchemaHasAllSettings(t *testing.T) {
	s := compiled(t)
	for _, r := range settings.Settable() {
		name := r.Name()
		of := s.Properties[name]
		if of == nil || of.Description == "" {
			t.Errorf("%s is not described", name)
			continue
		}
		if value := r.SchemaDefault(); value != nil {
			if err := bySchema(s, fmt.Sprintf("%s: %v", name, value)); err != nil {
				t.Errorf("the default of %s: %v", name, err)
			}
			if of.Default == nil || fmt.Sprint(*of.Default) != fmt.Sprint(value) {
				t.Errorf("%s: default %v, want %v", name, of.Default, value)
			}
		}
		for _, word := range settings.Choices(settings.Placeholder(r.Usage())) {
			if err := bySchema(s, fmt.Sprintf("%s: %q", name, word)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if len(s.Properties) != len(settings.Settable())+len(settings.SectionNames()) {
		t.Errorf("%d settings, want %d", len(s.Properties), len(settings.Settable())+len(settings.SectionNames()))
	}
}

// settingsFiles returns the settings files in examples, tests and pages of the repository, by place.
func settingsFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path != root && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		suffix := filepath.Ext(path)
		if e.IsDir() || e.Name() != "xdspub.yaml" && suffix != ".txtar" && suffix != ".md" {
			return nil
		}
		data, err := os.ReadFile(path)
		switch {
		case err != nil:
			return err
		case e.Name() == "xdspub.yaml":
			files[path] = string(data)
		case suffix == ".txtar":
			for _, f := range txtar.Parse(data).Files {
				if filepath.Base(f.Name) == "xdspub.yaml" {
					files[path+":"+f.Name] = string(f.Data)
				}
			}
		default:
			for i, block := range yamlBlocks(string(data)) {
				if onlySettings(block) {
					files[fmt.Sprintf("%s:%d", path, i)] = block
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// onlySettings reports whether each key of a text is a setting.
func onlySettings(text string) bool {
	var members map[string]any
	if err := yaml.Unmarshal([]byte(text), &members); err != nil || len(members) == 0 {
		return false
	}
	for name := range members {
		if !slices.Contains(append(settings.Names(settings.Settable()), settings.SectionNames()...), name) {
			return false
		}
	}
	return true
}

// yamlBlocks returns the YAML blocks of a page.
func yamlBlocks(page string) (blocks []string) {
	for _, part := range strings.Split(page, "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestSchemaOfFiles checks that the schema accepts the settings files of the repository that xdspub reads, and
// no other.
func TestSchemaOfFiles(t *testing.T) {
	s := compiled(t)
	taken := 0
	for where, text := range settingsFiles(t) {
		if text == "" { // for a schema, the same as a comment
			continue
		}
		said, err := byReader(t, text), bySchema(s, text)
		if (said == "") != (err == nil) {
			t.Errorf("%s:\n%s\nthe reader says %q, the schema %v", where, text, said, err)
		}
		if said == "" {
			taken++
		}
	}
	if taken < 8 {
		t.Errorf("only %d files are taken", taken)
	}
}

// TestSchemaRefuses checks with random values that the schema rejects what the reader rejects.
func TestSchemaRefuses(t *testing.T) {
	s := compiled(t)
	values := []string{`""`, "x", "0", "1", "-1", "2.5", "true", "off", "[]", "[x]", "[x, 1]", "[[x]]", "{}", "{a: b}", "null", "[null]", "0s", "5s", "-5s", "1m30s", "5", `"5"`, "5 s", "1d", "../x", "teams/*", "[teams/*, a/b]", "teams/", "a/../b", "**", "[a//b]",
		"/x", "json", "[json]", "JSON", "all", "none", "any", "3", "inline", "1.40", "1.4", `"1.40"`, "[1.36, 1.38.2]", "1.20", "grpc", "[grpc, envoy-ads]", "weight-sum", "[weight-sum, filter-conflict/lua-two-scripts]",
		"empty-file", "weight_sum", "socket-kept", "error", "{weight-sum: off}", "{weight-sum: warn}", "{filter-conflict/lua-two-scripts: info}", "{socket-kept: off}", "{socket-kept: info}", "{empty-file: off}", "{weight-sum: [off]}", "{weight-sum: {a: b}}", "{weight-sum: 1}",
		"[{files: a, rules: {weight-sum: off}}]", "[{files: [a, b/*], rules: {weight-sum: error}}]", "[{files: ../a, rules: {weight-sum: off}}]", "[{files: [], rules: {weight-sum: off}}]", "[{files: a}]", "[{rules: {weight-sum: off}}]", "[{files: a/./b, rules: {weight-sum: off}}]",
		"[{files: a//b, rules: {weight-sum: off}}]", "[{files: /, rules: {weight-sum: off}}]", "[{files: .., rules: {weight-sum: off}}]", "[{files: /a/, rules: {weight-sum: off}}]", "[{files: a, rules: {socket-kept: off}}]", "[{files: a, rules: {}, more: 1}]", "[{files: a, rules: off}]", "{files: a, rules: {weight-sum: off}}", "[a]",
		"{a: exists, b: [c, exists], d: {not: [e]}, f: {not: absent}}", "{a: {nto: b}}", "{a: {not: {not: b}}}", "{a: {}}", "{a: []}", "{a: [[b]]}", "{a: yes}", "{a: 1}", "{a: null}", "{a: {not: 1}}", `{"": a}`, "[{files: a, params: {b: c}}]",
		"[{files: [a, b/*], params: {b: c}}, {files: a, params: {d: [e]}}]", "[{files: ../a, params: {b: c}}]", "[{files: [], params: {b: c}}]", "[{files: a, params: {}}]", "[{files: a, params: {b: c}, more: 1}]", "[{params: {b: c}}]", "[{files: a, params: [b]}]",
		"[{from: Friday 17:00, to: Mon 8:00, zone: Europe/Berlin, reason: x}]", "[{from: 2026-12-24 0:00, to: 2026-12-24 24:00, zone: UTC}]", "[{from: Freitag 17:00, to: Mon 8:00, zone: UTC}]",
		"[{from: Friday 24:30, to: Mon 8:00, zone: UTC}]", "[{from: Friday 17:00, to: Mon 8:00, zone: Local}]", `[{from: Friday 17:00, to: Mon 8:00, zone: ""}]`, "[{from: Friday 17:00, to: Mon 8:00}]",
		"[{from: Friday 17:00, to: Mon 8:00, zone: [UTC]}]", "[{from: Friday 17:00, to: Mon 8:00, zone: UTC, until: x}]", "[{from: Friday 17:00, to: [Mon], zone: UTC}]",
		"{a: " + strings.Repeat("x", 1025) + "}", "{" + strings.Repeat("x", 1025) + ": a}"}
	names := append(append(settings.Names(settings.Settable()), settings.SectionNames()...), "bogus", "dry-run", "config")
	random := rand.New(rand.NewPCG(1, 2))
	refused, taken := 0, 0
	try := func(text string) {
		said, err := byReader(t, text), bySchema(s, text)
		switch {
		case said != "":
			refused++
		case err == nil:
			taken++
		}
		if said != "" && err == nil {
			t.Errorf("the schema takes %q, and the reader says %s", text, said)
		}
	}
	for _, value := range values { // all values of a setting with many
		for _, name := range []string{"rules", "overrides", "freeze", "owners", settingsfile.When, "envoy-version", "ack-quorum", "rescan", "eds", "inotify-budget"} {
			try(name + ": " + value)
		}
	}
	for range 300 {
		name := names[random.IntN(len(names))]
		text := name + ": " + values[random.IntN(len(values))]
		if other := names[random.IntN(len(names))]; other != name && random.IntN(4) == 0 {
			text += "\n" + other + ": " + values[random.IntN(len(values))]
		}
		try(text)
	}
	if refused < 300 || taken < 40 {
		t.Errorf("%d were refused, and %d taken", refused, taken)
	}
	// A schema can't find these faults.
	for _, text := range []string{`ignore: "["`, `owners: "["`, "poll-interval: 1ns", "eds: file\neds: file"} {
		if byReader(t, text) == "" {
			t.Errorf("the reader takes %q", text)
		}
	}
	if !slices.Contains(names, "envoy-log") {
		t.Error("no setting envoy-log")
	}
}
