package xds_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/xds"
)

func TestPath(t *testing.T) {
	for _, c := range []struct {
		path  xds.Path
		want  string
		steps []xds.Step
	}{
		{"", "", nil},
		{xds.Path("").Field("a"), "a", []xds.Step{{Name: "a"}}},
		{xds.Path("").Field("a").Field("b"), "a.b", []xds.Step{{Name: "a"}, {Name: "b"}}},
		{xds.Path("a").Index(0).Index(12), "a[0][12]", []xds.Step{{Name: "a"}, {Index: 0}, {Index: 12}}},
		{xds.Path("").Index(3).Field("a"), "[3].a", []xds.Step{{Index: 3}, {Name: "a"}}},
		{xds.Path("a").Key("b").Field("c"), `a["b"].c`, []xds.Step{{Name: "a"}, {Name: "b", Key: true}, {Name: "c"}}},
		{xds.Path("a").Key("envoy.filters.http.cors"), `a["envoy.filters.http.cors"]`, []xds.Step{{Name: "a"}, {Name: "envoy.filters.http.cors", Key: true}}},
		{xds.Path("a").Key(`]".[0]\`), `a["]\".[0]\\"]`, []xds.Step{{Name: "a"}, {Name: `]".[0]\`, Key: true}}},
		{xds.Path("a").Key(""), `a[""]`, []xds.Step{{Name: "a"}, {Key: true}}},
		{xds.Path("a").Key("größe\n\xff"), `a["größe\n\xff"]`, []xds.Step{{Name: "a"}, {Name: "größe\n\xff", Key: true}}},
		{xds.Path("a").Key("7").Index(7), `a["7"][7]`, []xds.Step{{Name: "a"}, {Name: "7", Key: true}, {Index: 7}}},
		{xds.Path("").Join("a"), "a", []xds.Step{{Name: "a"}}},
		{xds.Path("a").Join(""), "a", []xds.Step{{Name: "a"}}},
		{xds.Path("a").Join("b[1]"), "a.b[1]", []xds.Step{{Name: "a"}, {Name: "b"}, {Index: 1}}},
		{xds.Path("a").Join("[1].b"), "a[1].b", []xds.Step{{Name: "a"}, {Index: 1}, {Name: "b"}}},
		// Malformed: the part that can be read.
		{"a[", "a[", []xds.Step{{Name: "a"}}},
		{"a[x].b", "a[x].b", []xds.Step{{Name: "a"}}},
		{`a["b`, `a["b`, []xds.Step{{Name: "a"}}},
		{"a..b.", "a..b.", []xds.Step{{Name: "a"}, {Name: "b"}}},
	} {
		if string(c.path) != c.want {
			t.Errorf("path %s, want %s", c.path, c.want)
		}
		if diff := cmp.Diff(c.steps, slices.Collect(c.path.Steps())); diff != "" {
			t.Errorf("steps of %s (-want +got):\n%s", c.path, diff)
		}
		for range c.path.Steps() { // a loop over Steps may end early
			break
		}
	}
}

// build returns the path of steps.
func build(steps []xds.Step) xds.Path {
	path := xds.Path("")
	for _, s := range steps {
		switch {
		case s.Key:
			path = path.Key(s.Name)
		case s.Name != "":
			path = path.Field(s.Name)
		default:
			path = path.Index(s.Index)
		}
	}
	return path
}

// FuzzPath checks that the steps of any text make a path with the same steps, and that Key and Steps keep any key.
func FuzzPath(f *testing.F) {
	f.Add(`filter_chains[0].filters[1].typed_config.http_filters[2].name`, "key")
	f.Add(`a["envoy.filters.http.cors"].b`, `]".[0]\`)
	f.Add(`a["\xff\u00e9"][`, "\xff")
	f.Add(`[-1]..["`, "")
	f.Fuzz(func(t *testing.T, text, key string) {
		steps := slices.Collect(xds.Path(text).Steps())
		if diff := cmp.Diff(steps, slices.Collect(build(steps).Steps())); diff != "" {
			t.Errorf("%q, built again %q:\n%s", text, build(steps), diff)
		}
		want := append(slices.Clone(steps), xds.Step{Name: key, Key: true}, xds.Step{Name: "x"})
		if diff := cmp.Diff(want, slices.Collect(build(steps).Key(key).Field("x").Steps())); diff != "" {
			t.Errorf("%q with key %q:\n%s", text, key, diff)
		}
		if joined := build(steps).Join(xds.Path("").Key(key).Field("x")); joined != build(want) {
			t.Errorf("joined %q, want %q", joined, build(want))
		}
	})
}
