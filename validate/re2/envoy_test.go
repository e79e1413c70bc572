package re2_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
	"xdspub/validate/re2"
)

var update = flag.Bool("update", false, "ask the real Envoys about all patterns, and write sizes.json")

// encodings maps an encoding to the releases of Envoy that use it.
var encodings = map[re2.Encoding][]string{re2.Latin1: {"1.40", "1.39"}, re2.UTF8: {"1.38", "1.36"}}

// TestEnvoy asks real Envoys for a sample of the sizes in testdata/sizes.json.
func TestEnvoy(t *testing.T) {
	cases := readSizes(t)
	asked := cases
	if !*update {
		const every = 20
		asked = nil
		for i := 0; i < len(cases); i += every {
			asked = append(asked, cases[i])
		}
	}
	for encoding, releases := range encodings {
		for _, release := range releases {
			for i, size := range sizesOf(t, envoyapi.Named(release), asked) {
				switch c := asked[i]; {
				case *update:
					c.sizes[encoding] = size
				case c.sizes[encoding] != size:
					t.Errorf("Envoy %s: %q: %v instructions, sizes.json has %v", release, c.pattern, size, c.sizes[encoding])
				}
			}
		}
	}
	if *update {
		writeSizes(t, cases)
	}
}

// sizesOf asks an Envoy for the sizes of patterns. The size of a refused pattern is 0.
func sizesOf(t *testing.T, v *envoyapi.Version, cases []sized) (sizes []int) {
	t.Helper()
	var listeners []map[string]any
	for _, c := range cases {
		pattern, err := json.Marshal(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		var l map[string]any
		if err := json.Unmarshal([]byte(strings.Replace(listener, "PATTERN", string(pattern), 1)), &l); err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	refused := envoytest.Listeners(t, envoytest.Version(t, v.Name), listeners)
	named := regexp.MustCompile(`RE2 program size of (\d+)`)
	for i := range cases {
		size := 0
		if _, no := refused[i]; !no {
			size = 1
		} else if m := named.FindStringSubmatch(refused[i]); m != nil && m[1] != "4294967295" { // before 1.40, Envoy reports this size for an invalid pattern
			size, _ = strconv.Atoi(m[1])
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// listener has a route with a pattern. The limit is 0, so Envoy reports the number of instructions.
const listener = `{"filter_chains": [{"filters": [{"name": "h", "typed_config": {
	"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	"stat_prefix": "s",
	"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
	"route_config": {"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [
		{"match": {"safe_regex": {"google_re2": {"max_program_size": 1}, "regex": PATTERN}}, "redirect": {"https_redirect": true}}
	]}]}
}}]}]}`

// sized is a pattern and its sizes.
type sized struct {
	pattern string
	sizes   map[re2.Encoding]int // 0 if Envoy refuses the pattern
}

func readSizes(t *testing.T) (cases []sized) {
	t.Helper()
	data, err := os.ReadFile("testdata/sizes.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		c := sized{row[0].(string), make(map[re2.Encoding]int)}
		for i, size := range row[1:] {
			n, _ := size.(float64) // null stands for 0
			c.sizes[re2.Encoding(i)] = int(n)
		}
		cases = append(cases, c)
	}
	return cases
}

func writeSizes(t *testing.T, cases []sized) {
	t.Helper()
	var text bytes.Buffer
	for i, c := range cases {
		row := []any{c.pattern, nil, nil}
		for encoding, size := range c.sizes {
			if size > 0 {
				row[1+encoding] = size
			}
		}
		line := &bytes.Buffer{}
		e := json.NewEncoder(line)
		e.SetEscapeHTML(false)
		if err := e.Encode(row); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s%s", map[bool]string{true: "[\n", false: ",\n"}[i == 0], bytes.TrimSpace(line.Bytes()))
	}
	text.WriteString("\n]\n")
	if err := os.WriteFile("testdata/sizes.json", text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
