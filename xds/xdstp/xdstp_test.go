package xdstp_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"xdspub/xds/xdstp"
)

const of = "envoy.config.endpoint.v3.ClusterLoadAssignment"

// TestCanonical: the spellings on the right are those by which Envoy 1.40 asks.
func TestCanonical(t *testing.T) {
	for _, c := range []struct{ name, canonical string }{
		{"web", "web"},
		{"", ""},
		{"XDSTP://AUTH/" + of + "/a?b&a", "XDSTP://AUTH/" + of + "/a?b&a"}, // a plain name
		{"xdstp://auth/" + of + "/web", "xdstp://auth/" + of + "/web"},
		{"xdstp:///" + of + "/web", "xdstp:///" + of + "/web"},
		{"xdstp://auth/" + of + "/web?b=2&a=1", "xdstp://auth/" + of + "/web?a=1&b=2"},
		{"xdstp://auth/" + of + "/w%65b/x:y", "xdstp://auth/" + of + "/web/x:y"},
		{"xdstp://auth/" + of + "/a%2fb", "xdstp://auth/" + of + "/a/b"},
		{"xdstp://auth/" + of + "//a//b/", "xdstp://auth/" + of + "//a//b/"},
		{"xdstp://auth/" + of + "/a/../b/.", "xdstp://auth/" + of + "/a/../b/."},
		{"xdstp://auth/" + of + "/a b%20c", "xdstp://auth/" + of + "/a b c"},
		{"xdstp://auth/" + of + "/é%c3%a9%7f%01", "xdstp://auth/" + of + "/%C3%A9%C3%A9%7F%01"},
		{"xdstp://auth/" + of + "/a~[b]%3f%23%25", "xdstp://auth/" + of + "/a%7E%5Bb%5D%3F%23%25"},
		{"xdstp://a%2fb%3f:80/" + of + "/a", "xdstp://a%2Fb%3F:80/" + of + "/a"},
		{"xdstp://a[b]&=/" + of + "/a&=", "xdstp://a[b]&=/" + of + "/a&="},
		{"xdstp://auth/" + of + "/a?b&a=", "xdstp://auth/" + of + "/a?a=&b="},
		{"xdstp://auth/" + of + "/a?", "xdstp://auth/" + of + "/a"},
		{"xdstp://auth/" + of + "/", "xdstp://auth/" + of},
		{"xdstp://auth/" + of + "?b=1&a=1", "xdstp://auth/" + of + "?a=1&b=1"},
		{"xdstp://auth/" + of + "/a?x=a=b&y=?/+", "xdstp://auth/" + of + "/a?x=a%3Db&y=?/+"},
		{"xdstp://auth/" + of + "/a?a-=1&a=2&a%31=3&ab=4&A=5", "xdstp://auth/" + of + "/a?A=5&a-=1&a1=3&a=2&ab=4"},
		{"xdstp://auth/" + of + "/g/*?b=1&a=1", "xdstp://auth/" + of + "/g/*?a=1&b=1"},
		{"xdstp://auth/" + of + "/a?b=1&&a=1", "xdstp://auth/" + of + "/a?=&a=1&b=1"},
	} {
		if got := xdstp.Canonical(c.name); got != c.canonical {
			t.Errorf("%s\n got  %s\n want %s", c.name, got, c.canonical)
		}
	}
}

func TestCollection(t *testing.T) {
	for name, collection := range map[string]string{
		"web":                         "",
		"xdstp://a":                   "",
		"xdstp://a/t":                 "",
		"xdstp://a/t?a=/b":            "",
		"xdstp://a/t/web":             "xdstp://a/t/*",
		"xdstp://a/t/g/web":           "xdstp://a/t/g/*",
		"xdstp://a/t/g/web?a=1/2&b=2": "xdstp://a/t/g/*?a=1/2&b=2",
		"xdstp://a/t/g/":              "xdstp://a/t/g/*",
		"xdstp://a/t/g/*":             "xdstp://a/t/g/*",
		"xdstp:///t/web":              "xdstp:///t/*",
		"xdstp://a/t/g/*?a=1":         "xdstp://a/t/g/*?a=1",
		"xdstp://a/t/g/*/x":           "xdstp://a/t/g/*/*",
	} {
		if got := xdstp.Collection(name); got != collection {
			t.Errorf("%s belongs to %q, not to %q", name, got, collection)
		}
		if got := xdstp.IsCollection(name); got != (collection != "" && name == collection) {
			t.Errorf("%s is a collection: %v", name, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, err string }{
		{"xdstp:", "does not begin with xdstp://"},
		{"xdstp:foo", "does not begin with xdstp://"},
		{"xdstp:/auth/" + of + "/a", "does not begin with xdstp://"},
		{"xdstp://", "no type"},
		{"xdstp://auth", "no type"},
		{"xdstp://auth/", "no type"},
		{"xdstp://auth?a=b", "no type"},
		{"xdstp://auth?a/" + of + "/b", "no type"},
		{"xdstp://auth//a", "no type"},
		{"xdstp://auth/" + of + "/a#b", "has a fragment"},
		{"xdstp://auth/" + of + "/a%", "a % that"},
		{"xdstp://auth/" + of + "/a%4", "a % that"},
		{"xdstp://a%zz/" + of + "/a", "a % that"},
		{"xdstp://auth/" + of + "/a?%g1=b", "a % that"},
		{"xdstp://auth/" + of + "/a?b=%", "a % that"},
		{"xdstp://auth/" + of + "/a?b=1&%62=2", `the parameter "b" twice`},
	} {
		_, err := xdstp.Parse(c.name)
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.err)
		}
		if got := xdstp.Canonical(c.name); got != c.name {
			t.Errorf("%s became %s", c.name, got)
		}
	}
}

// FuzzCanonical: the canonical spelling means what it is made of, has one form, and is bounded.
func FuzzCanonical(f *testing.F) {
	f.Add("xdstp://auth/" + of + "/w%65b/~?b=%20&a=[")
	f.Add("xdstp:///t?=&a")
	f.Add("plain")
	f.Fuzz(func(t *testing.T, name string) {
		got := xdstp.Canonical(name)
		if again := xdstp.Canonical(got); again != got {
			t.Errorf("%q became %q, and that %q", name, got, again)
		}
		if len(got) > 3*len(name)+1 {
			t.Errorf("%q became as long as %q", name, got)
		}
		if utf8.ValidString(name) && !utf8.ValidString(got) {
			t.Errorf("%q is no text any more: %q", name, got)
		}
		before, err := xdstp.Parse(name)
		if err != nil {
			return
		}
		after, err := xdstp.Parse(got)
		if err != nil || after.Authority != before.Authority || after.Type != before.Type || after.Path != before.Path || len(after.Params) != len(before.Params) {
			t.Errorf("%q means %v, and %q %v, %v", name, before, got, after, err)
		}
		for key, value := range before.Params {
			if after.Params[key] != value {
				t.Errorf("%q and %q have other parameters", name, got)
			}
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	for name, text := range map[string]string{"plain": "outbound|80||web.default.svc.cluster.local", "xdstp": "xdstp://auth/" + of + "/web?b=2&a=1"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				xdstp.Canonical(text)
			}
		})
	}
}
