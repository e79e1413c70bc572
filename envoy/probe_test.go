package envoy_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"xdspub/envoy"
	"xdspub/tools/envoytest"
)

// TestLookAfterRename: an Envoy that answers, even a busy one, has read the files that were renamed before the
// question. So a Probe does not have to wait.
func TestLookAfterRename(t *testing.T) {
	s := newFixture(t)
	var many []object
	for i := range 300 { // makes dumps and CDS slow
		many = append(many, static(fmt.Sprint("c", i)))
	}
	s.publish("cds", "v1", many...)
	_, a := s.start(nil)
	end := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			if status, _, err := envoytest.Get(t, a.String()+"/config_dump"); err != nil || status != http.StatusOK {
				t.Errorf("status %d, %v", status, err)
				return
			}
		}
	})
	defer busy.Wait()
	defer close(end)
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	for i := range 20 {
		version := fmt.Sprint("v", 2+i)
		many[i%len(many)]["alt_stat_name"] = version
		s.publish("cds", version, many...)
		s.publish("lds", version)
		looks := fleet.Probe(t.Context(), []envoy.Subscription{sub("CDS", envoy.CDS(), version), sub("LDS", envoy.LDS(), version)})
		if !looks[0].Runs() {
			t.Fatalf("%s: %v %+v", version, looks[0].Err, looks[0].States)
		}
	}
}

// TestLookAtSharedRoot has two runtime layers. They share their statistics, and so one version_text: that of the
// layer that Envoy read last.
func TestLookAtSharedRoot(t *testing.T) {
	s := newFixture(t)
	layer := func(name string) object {
		return object{"@type": typeURL + "envoy.service.runtime.v3.Runtime", "name": name, "layer": object{}}
	}
	s.publish("one", "o1", layer("one"))
	s.publish("two", "t1", layer("two"))
	var layers []any
	for _, name := range []string{"one", "two"} {
		layers = append(layers, object{"name": name, "rtds_layer": object{"name": name, "rtds_config": s.source(name)}})
	}
	_, a := s.start(object{"layered_runtime": object{"layers": layers}})
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	for _, tt := range []struct {
		one, two string
		want     envoy.State
	}{{"o1", "t1", envoy.Acked}, {"o1", "t2", envoy.Acked}, {"o2", "t2", envoy.Acked}} {
		s.publish("one", tt.one, layer("one"))
		s.publish("two", tt.two, layer("two"))
		look := fleet.Probe(t.Context(), []envoy.Subscription{sub("RTDS", envoy.RTDS(), tt.one), sub("RTDS", envoy.RTDS(), tt.two)})[0]
		if len(look.States) != 2 || look.States[0].State != tt.want || look.States[1].State != tt.want || !look.Runs() {
			t.Errorf("%s, %s: %v %+v", tt.one, tt.two, look.Err, look.States)
		}
	}
	look := fleet.Probe(t.Context(), []envoy.Subscription{sub("RTDS", envoy.RTDS(), "o3"), sub("RTDS", envoy.RTDS(), "t3")})[0]
	if look.Runs() || look.States[0].State != envoy.Pending {
		t.Errorf("versions that it never had: %+v", look.States)
	}
}

// TestLookClosely: ProbeInDetail has the names of refused listeners and of warming clusters.
func TestLookClosely(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s := newFixture(t)
	cold := static("cold")
	cold["health_checks"] = []any{object{"timeout": "60s", "interval": "60s", "unhealthy_threshold": 1, "healthy_threshold": 1, "http_health_check": object{"path": "/"}}} // nobody answers
	port := held.Addr().(*net.TCPAddr).Port
	cold["load_assignment"] = object{"cluster_name": "cold", "endpoints": []any{object{"lb_endpoints": []any{object{"endpoint": object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": port}}}}}}}}
	_, a := s.start(nil)
	s.publish("cds", "v2", cold)
	s.publish("lds", "v2", listener("busy", port, object{"route_config": object{}}))
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{a}, Dir: s.dir})
	both := []envoy.Subscription{sub("CDS", envoy.CDS(), "v2"), sub("LDS", envoy.LDS(), "v2")}
	look := fleet.ProbeInDetail(t.Context(), both)[0]
	if look.Err != nil || len(look.Warming) != 1 || look.Warming[0] != "cold" || len(look.Refused) != 1 || look.Refused[0].Resource != "busy" || !strings.Contains(look.Refused[0].Message, "already in use") {
		t.Errorf("%+v", look)
	}
	s.publish("lds", "v3")
	if look := fleet.ProbeInDetail(t.Context(), both)[0]; look.Err != nil || len(look.Refused) != 0 {
		t.Errorf("after a file that it took: %+v", look)
	}
}
