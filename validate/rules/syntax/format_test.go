package syntax_test

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules/syntax"
	"xdspub/xds"
	_ "xdspub/xds/alltypes"
)

// TestLateFormats: some formats are faults although Envoy accepts them when it loads the configuration. They crash
// Envoy at the first request, or Envoy then goes on without the service that it calls.
func TestLateFormats(t *testing.T) {
	service := func(value string) string {
		return `"grpc_service": {"envoy_grpc": {"cluster_name": "web"}, "initial_metadata": [{"key": "a", "value": "` + value + `"}]}`
	}
	for _, c := range []struct {
		filter string
		want   diag.Severity
	}{
		{`{"@type": "type.googleapis.com/envoy.extensions.filters.network.ext_authz.v3.ExtAuthz", "stat_prefix": "a", ` + service("%FOO%") + `}`, diag.Error},
		{`{"@type": "type.googleapis.com/envoy.extensions.filters.network.ratelimit.v3.RateLimit", "stat_prefix": "a", "rate_limit_service": {` + service("%FOO%") + `}}`, diag.Error},
		{`{"@type": "type.googleapis.com/envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor", "stat_prefix": "a", ` + service("%FOO%") + `}`, diag.Warning},
		{`{"@type": "type.googleapis.com/envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor", "stat_prefix": "a", ` + service("%CEL(xds.node)%") + `}`, diag.Error},
		{`{"@type": "type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy", "prefix_routes": {"routes": [{"cluster": "web", "key_formatter": "{%KEY%}%FOO%"}]}}`, diag.Error},
	} {
		var l listenerv3.Listener
		text := `{"name": "web", "filter_chains": [{"filters": [{"name": "a", "typed_config": ` + c.filter + `}]}]}`
		if err := protojson.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		resource, err := xds.NewResource(&l, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, d := range validate.Run(t.Context(), xds.NewSnapshot([]*xds.Resource{resource}), syntax.Rules, validate.Options{}) {
			if d.Code == "bad-format-string" && d.Severity == c.want {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d findings of severity %s, want 1", c.filter, found, c.want)
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
