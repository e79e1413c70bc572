package load_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/tools/fixing"
	"xdspub/tools/sample"
	"xdspub/xds"
)

// TestRanges checks the text of ranges: of the key if the value is on later lines, otherwise of the whole
// value.
func TestRanges(t *testing.T) {
	type want map[xds.Path]string
	for _, c := range []struct {
		name, file, text string
		want             want
	}{
		{"yaml", "a.yaml", `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: &n größe   # a comment
alt_stat_name: !!str 'it''s "it"'
connect_timeout: "1\"s" 
metadata:
  filter_metadata:
    é: {日本: [ "ü", plain text , {a: b}, ] , c: }
    d: |
      two
        lines

    e: >-
      folded
    f: plain
      on two lines
    g: *n
    ? "key"
    : below
type: STATIC
`, want{
			"":     "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: &n größe   # a comment\nalt_stat_name: !!str 'it''s \"it\"'\nconnect_timeout: \"1\\\"s\" \nmetadata:\n  filter_metadata:\n    é: {日本: [ \"ü\", plain text , {a: b}, ] , c: }\n    d: |\n      two\n        lines\n\n    e: >-\n      folded\n    f: plain\n      on two lines\n    g: *n\n    ? \"key\"\n    : below\ntype: STATIC",
			"name": "&n größe", "alt_stat_name": `!!str 'it''s "it"'`, "connect_timeout": `"1\"s"`,
			"metadata": "metadata", "metadata.filter_metadata": "filter_metadata", "missing": "",
			`metadata.filter_metadata["é"]`:            `{日本: [ "ü", plain text , {a: b}, ] , c: }`,
			`metadata.filter_metadata["é"]["日本"]`:      `[ "ü", plain text , {a: b}, ]`,
			`metadata.filter_metadata["é"]["日本"][0]`:   `"ü"`,
			`metadata.filter_metadata["é"]["日本"][1]`:   `plain text`,
			`metadata.filter_metadata["é"]["日本"][2]`:   `{a: b}`,
			`metadata.filter_metadata["é"]["日本"][2].a`: `b`,
			"metadata.filter_metadata.d":               "|\n      two\n        lines",
			"metadata.filter_metadata.e":               ">-\n      folded",
			"metadata.filter_metadata.f":               "plain\n      on two lines",
			"metadata.filter_metadata.g":               "*n",
			"metadata.filter_metadata.key":             `"key"`,
			"type":                                     "STATIC",
		}},
		{"json", "a.json", "{\r\n \"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\",\r\n \"name\" : \"grö\\\"ße\" , \"connectTimeout\":\"1s\",\n\"metadata\": { \"filter_metadata\": {\"é\": {\"a\":[1, null ,{} ]}}}}", want{
			"name": `"grö\"ße"`, "connect_timeout": `"1s"`,
			`metadata.filter_metadata["é"]`:      `{"a":[1, null ,{} ]}`,
			`metadata.filter_metadata["é"].a`:    `[1, null ,{} ]`,
			`metadata.filter_metadata["é"].a[1]`: `null`,
			`metadata.filter_metadata["é"].a[2]`: `{}`,
			"metadata":                           "{ \"filter_metadata\": {\"é\": {\"a\":[1, null ,{} ]}}}",
			"missing":                            "", // checked below: the whole object
		}},
		{"text", "a.txtpb", `# proto-message: envoy.config.cluster.v3.Cluster
name: "grö" 'ße' # a comment
type: STATIC connect_timeout { seconds: -1 }
alt_stat_name :'x'
`, want{
			"name": `"grö" 'ße'`, "type": "STATIC", "connect_timeout": "connect_timeout", "connect_timeout.seconds": "-1", "alt_stat_name": "'x'",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			result, err := load.New(load.Options{}).Load(t.Context(), dir)
			if err != nil || len(result.Resources()) != 1 {
				t.Fatalf("%v, %v", err, result.Diagnostics)
			}
			c.want["missing"] = fixing.Text(t, result.Resources()[0].Origin.Range(""))
			for path, want := range c.want {
				if got := fixing.Text(t, result.Resources()[0].Origin.Range(path)); got != want {
					t.Errorf("%s: %q, want %q", path, got, want)
				}
			}
		})
	}
}

// TestRangesInLongFiles checks that a list that is parsed in pieces, the text beside it, and long JSON have the
// ranges of the whole file.
func TestRangesInLongFiles(t *testing.T) {
	const n = 300
	yaml := strings.Replace(sample.Clusters(n), "name: service-00150", "name: &x größe", 1)
	for _, c := range []struct{ name, file, text string }{
		{"pieces", "a.yaml", strings.Replace(sample.Clusters(n), "name: service-00150", "name: grö\u00dfe", 1)},
		{"whole", "a.yaml", yaml},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text+"control_plane: {identifer: x}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			result, err := load.New(load.Options{}).Load(t.Context(), dir)
			if err != nil || len(result.Resources()) != n || len(result.Diagnostics) != 1 {
				t.Fatalf("%v, %v", err, result.Diagnostics)
			}
			d := result.Diagnostics[0]
			if got := fixing.Text(t, diag.Range{Position: d.Position, End: d.End}); got != "identifer" || len(d.Fixes) != 1 || fixing.Text(t, d.Fixes[0].Edits[0].Range) != "identifer" {
				t.Errorf("%s, fixes %v", got, d.Fixes)
			}
			for i, r := range result.Resources() {
				if got := fixing.Text(t, r.Origin.Range("load_assignment.cluster_name")); got != r.Name && i != 150 {
					t.Errorf("%s: %q", r.Name, got)
				}
				e, ok := r.Origin.Correct("name", diag.Correction{Wrong: r.Name, Right: "other"})
				if i != 150 && (!ok || fixing.Text(t, e.Range) != r.Name || e.Text != "other") {
					t.Errorf("%s: %v, %v", r.Name, ok, e)
				}
			}
			if got := fixing.Text(t, result.Resources()[150].Origin.Range("name")); !strings.HasSuffix(got, "größe") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestCorrections checks that a correction keeps the form of the replaced text. There is no correction if the
// source does not have the word, or shares it.
func TestCorrections(t *testing.T) {
	const (
		head  = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
		json  = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": `
		proto = "# proto-message: envoy.config.cluster.v3.Cluster\n"
	)
	for _, c := range []struct{ file, head, text, wrong, right, want string }{
		{"a.yaml", head, `name: a b # c`, "a b", "ab", `name: ab # c`},
		{"a.yaml", head, `name: a`, "a", "yes", `name: "yes"`},
		{"a.yaml", head, `name: a`, "a", "1", `name: "1"`},
		{"a.yaml", head, `name: a`, "a", `b: "c`, `name: "b: \"c"`},
		{"a.yaml", head, `name: 'a'`, "a", `b`, `name: 'b'`},
		{"a.yaml", head, `name: 'a'`, "a", `b's`, `name: "b's"`},
		{"a.yaml", head, `name: "a"`, "a", "b", `name: "b"`},
		{"a.yaml", head, "name:\n  a", "a", "b", "name:\n  b"},
		{"a.yaml", head, "name: !!str a", "a", "b", "name: !!str b"},
		{"a.yaml", head, `name: x/word/y`, "word", "world", `name: x/world/y`},
		{"a.yaml", head, `name: word/word`, "word", "world", ""},
		{"a.yaml", head, `name: x-a b-y`, "a b", "c", ""},
		{"a.yaml", head, `name: a`, "b", "c", ""},
		{"a.yaml", head, "alt_stat_name: &x a\nname: *x", "a", "b", ""},
		{"a.yaml", head, "name: &x a\nalt_stat_name: *x", "a", "b", ""},
		{"a.json", json, `"\u0061"}`, "a", "<\"é", `"<\"é"}`},
		{"a.txtpb", proto, `name: 'a'`, "a", "b", `name: "b"`},
		{"a.txtpb", proto, `name: "a" 'c'`, "ac", "b\"", `name: "b\""`},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, c.file)
		if err := os.WriteFile(path, []byte(c.head+c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		result, err := load.New(load.Options{}).Load(t.Context(), dir)
		if err != nil || len(result.Resources()) != 1 {
			t.Fatalf("%s: %v, %v", c.text, err, result.Diagnostics)
		}
		e, ok := result.Resources()[0].Origin.Correct("name", diag.Correction{Wrong: c.wrong, Right: c.right})
		if ok != (c.want != "") {
			t.Errorf("%s: %v, %v", c.text, ok, e)
		}
		if !ok {
			continue
		}
		fixing.Apply(t, diag.Fix{Edits: []diag.Edit{e}})
		if got, err := os.ReadFile(path); err != nil || string(got) != c.head+c.want {
			t.Errorf("%s: got %q, want %q; %v", c.text, got[len(c.head):], c.want, err)
		}
	}
}
