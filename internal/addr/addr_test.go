package addr

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]Address{
		"127.0.0.1:1":   {"tcp", "127.0.0.1:1"},
		"[::1]:1":       {"tcp", "[::1]:1"},
		":18000":        {"tcp", ":18000"},
		"xds.test:1":    {"tcp", "xds.test:1"},
		"unix:/run/a":   {"unix", "/run/a"},
		"unix:a.sock":   {"unix", "a.sock"},
		"":              {},
		"18000":         {"tcp", "127.0.0.1:18000"},
		"65536":         {},
		"unix:":         {},
		"unix:@a":       {}, // an abstract socket has no permissions
		"host:http":     {},
		"host:65536":    {},
		"host:-1":       {},
		"http://host:1": {},
	} {
		if is, err := Parse(text); is != want || (err == nil) != (want != Address{}) {
			t.Errorf("%q: %v, %v", text, is, err)
		}
	}
}

func TestParseListener(t *testing.T) {
	for text, want := range map[string]Address{
		"fd:xds":      {"fd", "xds"},
		"fd:":         {},
		"unix:/run/a": {"unix", "/run/a"},
		"18000":       {"tcp", "127.0.0.1:18000"},
	} {
		if is, err := ParseListener(text); is != want || (err == nil) != (want != Address{}) || err == nil && is.Network == "fd" && is.String() != text {
			t.Errorf("%q: %v, %v", text, is, err)
		}
	}
}
