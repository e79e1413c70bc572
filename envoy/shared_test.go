package envoy_test

import (
	"testing"

	"xdspub/envoy"
)

// TestSharedRoutes has two connection managers share a route configuration. The stat_prefix of the first stays in
// the names of the statistics after this connection manager is removed. So the stat prefix has Any in its place.
func TestSharedRoutes(t *testing.T) {
	s := newFixture(t)
	s.publish("rds", "r1", routes("main", ""))
	manager := func(prefix string) object {
		return object{"stat_prefix": prefix, "rds": object{"route_config_name": "main", "config_source": s.source("rds")}}
	}
	s.publish("lds", "l1", listener("one", 0, manager("first")), listener("two", 0, manager("second")))
	_, a := s.start(nil, "--drain-time-s", "1")
	root := envoy.RDS(envoy.Any, "main")
	has := func(want string) func(*envoy.Observation) bool {
		return func(o *envoy.Observation) bool {
			_, ok := o.Counters[want]
			return ok && len(o.Counters) == 1
		}
	}
	eventually(t, a, "the first one reports", []string{root}, has(envoy.RDS("first", "main")))
	s.publish("lds", "l2", listener("two", 0, manager("second")))
	eventually(t, a, "the first one is gone", nil, func(o *envoy.Observation) bool { return o.DrainingListeners == 0 })
	eventually(t, a, "its prefix stays", []string{root}, has(envoy.RDS("first", "main")))

	// An Envoy whose bootstrap names no entrypoint has nothing to acknowledge.
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	subs := []envoy.Subscription{{API: "RDS", Name: "main", Version: "r1", StatPrefixes: []string{root}, Entrypoints: []string{"lds/file.json", "nowhere.json"}}, {API: "CDS", Version: "c", StatPrefixes: []string{envoy.CDS()}, Entrypoints: []string{"nowhere.json"}}}
	looks := fleet.Probe(t.Context(), subs)
	if len(looks) != 1 || looks[0].Err != nil || len(looks[0].States) != 1 || looks[0].States[0].State != envoy.Acked || !looks[0].Runs() {
		t.Errorf("%+v", looks)
	}
}
