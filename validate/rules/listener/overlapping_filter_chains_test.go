package listener_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/diag"
	"xdspub/tools/envoytest"
	"xdspub/validate"
	"xdspub/validate/rules/listener"
	"xdspub/xds"
	_ "xdspub/xds/alltypes"
)

type object = map[string]any

// TestRandomFilterChains asks the real Envoy about random filter chains, many of which are similar. Envoy must
// refuse exactly those that overlapping-filter-chains reports.
func TestRandomFilterChains(t *testing.T) {
	if testing.Short() {
		t.Skip("judges 1,500 listeners")
	}
	envoytest.Binary(t)
	r := rand.New(rand.NewPCG(3, 4))
	some := func(list ...any) []any { // up to two values, without repetitions
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:r.IntN(3)]
	}
	ranges := func() []any {
		at := func(address string, bits int) object { return object{"address_prefix": address, "prefix_len": bits} }
		return some(at("10.0.0.1", 8), at("10.2.0.0", 8), at("10.0.0.0", 16), at("::1", 128))
	}
	match := func() object {
		m := object{}
		set := func(field string, value any) {
			if r.IntN(2) == 0 {
				m[field] = value
			}
		}
		set("destination_port", 1+r.IntN(2))
		set("prefix_ranges", ranges())
		set("server_names", some("a.example.com", "A.example.com", "*.example.com", ".example.com"))
		set("transport_protocol", []string{"", "tls"}[r.IntN(2)])
		set("application_protocols", some("h2", "http/1.1", "H2"))
		set("direct_source_prefix_ranges", ranges())
		set("source_type", r.IntN(3))
		set("source_prefix_ranges", ranges())
		set("source_ports", some(1, 2))
		return m
	}
	echo := object{"name": "echo", "typed_config": object{"@type": "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo"}}
	inspector := object{"name": "tls", "typed_config": object{"@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}}
	var listeners []map[string]any
	for range 1500 {
		var chains []any
		for i := range 2 + r.IntN(6) {
			chains = append(chains, object{"name": fmt.Sprint(i), "filter_chain_match": match(), "filters": []any{echo}})
		}
		listeners = append(listeners, object{"filter_chains": chains, "listener_filters": []any{inspector}})
	}
	refused := envoytest.Listeners(t, "", listeners)
	if n := len(refused); n < 200 || n > 1300 {
		t.Errorf("Envoy refused %d of %d: that says little", n, len(listeners))
	}
	for i, fields := range listeners {
		delete(fields, "@type")
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		l := new(listenerv3.Listener)
		if err := protojson.Unmarshal(text, l); err != nil {
			t.Fatal(err)
		}
		resource, err := xds.NewResource(l, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, d := range validate.Run(t.Context(), xds.NewSnapshot([]*xds.Resource{resource}), listener.Rules, validate.Options{}) {
			if d.Code == "overlapping-filter-chains" {
				found = d.Message
			}
		}
		if reason, wrong := refused[i]; wrong != (found != "") {
			t.Errorf("Envoy refused: %v (%s)\nfound: %s\n%s", wrong, reason, found, text)
		}
	}
}

// nowhere is an Origin without places.
type nowhere struct{}

func (nowhere) Range(xds.Path) diag.Range          { return diag.Range{} }
func (nowhere) InWrapper(xds.Path) (at diag.Range) { return }
func (nowhere) Constraints(bool) (at diag.Range)   { return }

func (nowhere) Correct(xds.Path, diag.Correction) (e diag.Edit, ok bool) { return }

func (nowhere) Shows(xds.Path) bool { return false }
