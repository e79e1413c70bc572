package planner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/render"
	"xdspub/render/published"
	"xdspub/tools/fixture"
)

// TestOrder checks that a plan publishes the files that a resource names before the resource, and that
// resources that named them before still exist then.
func TestOrder(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a"), fmt.Sprintf(fixture.Secret, "x")))
	s.Want("the first publish", `
new names: eds/blue/eds.json
new names: rds/main/rds.json
new names: sds/token/sds.json
clusters: cds/cds.json
listeners: lds/lds.json`)
	s.Want("nothing changed", "")

	s.Tree(fixture.Tree(fixture.Blue, fixture.Green, fixture.BlueEndpoints[:len(fixture.BlueEndpoints)-1]+`, policy: {overprovisioning_factor: 150}}`, fixture.GreenEndpoints,
		fmt.Sprintf(fixture.RoutesTo, "green"), fmt.Sprintf(fixture.Listener, "b"), fmt.Sprintf(fixture.Secret, "y"), fixture.Layer))
	s.Want("all changed", `
new names: eds/green/eds.json
new names: rtds/flags/rtds.json
new names: sds/token/sds.json
clusters: cds/cds.json
endpoints: eds/blue/eds.json
listeners: lds/lds.json
routes: rds/main/rds.json`)
}

// TestReturn checks that a retired cluster that comes back is planned as if it never went, because Envoy kept
// the subscription to its file.
func TestReturn(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.Green, fixture.BlueEndpoints, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Now = s.Now.Add(time.Minute)
	s.Tree(fixture.Tree(fixture.Blue, fixture.Green, fixture.BlueEndpoints[:len(fixture.BlueEndpoints)-1]+`, policy: {overprovisioning_factor: 150}}`, fixture.GreenEndpoints))
	s.Want("blue returns", "endpoints: eds/blue/eds.json")
	s.Now = s.Now.Add(time.Hour)
	s.Want("and does not go", "")
}

// TestRoutesWaitForClusters checks that routes that come back before the trim of their file wait for their
// clusters, because a draining listener still reads the file.
func TestRoutesWaitForClusters(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a")))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), fmt.Sprintf(fixture.Listener, "a")))
	s.Want("routes to a new cluster come back", `
new names: eds/green/eds.json
clusters: cds/cds.json
routes that no listener asks for yet: rds/main/rds.json
listeners: lds/lds.json
`)
}

// TestRoutesOfADeadChange interrupts a publish after routes to a cluster that then never comes. No listener may
// read these routes.
func TestRoutesOfADeadChange(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	in := fmt.Sprintf(fixture.Listener, "a")
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fixture.Blue, fixture.BlueEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"), in))
	s.Stop(1)
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), in))
	s.Want("the change that comes instead", `
routes that no listener asks for yet: rds/main/rds.json
listeners: lds/lds.json`)
}

// TestEndpointsOfADeadChange is TestRoutesOfADeadChange for the endpoints of a cluster that runs as STATIC.
func TestEndpointsOfADeadChange(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(strings.Replace(fixture.Blue, "EDS", "STATIC", 1), fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints))
	s.Stop(1)
	s.Tree(fixture.Tree(fixture.Blue, strings.TrimSuffix(fixture.BlueEndpoints, "}")+", policy: {overprovisioning_factor: 150}}", fixture.Green, fixture.GreenEndpoints))
	s.Want("the change that comes instead", `
new names: eds/blue/eds.json
clusters: cds/cds.json`)
}

// TestExtensionsAfterClusters checks that new and changed filters are published after new clusters, which they
// may call. The filters of clusters are an exception.
func TestExtensionsAfterClusters(t *testing.T) {
	const (
		extension = `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: 'function envoy_on_request(h) h:httpCall("%s", {}, "", 1) end'}}}`
		asks      = `http_filters: [{name: lua, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}, `
	)
	in := strings.Replace(fmt.Sprintf(fixture.Listener, "a"), "http_filters: [", asks, 1)
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fixture.Blue, fixture.BlueEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), in, fmt.Sprintf(extension, "blue")))
	s.Want("the filter comes with a cluster that it calls", `
new names: eds/blue/eds.json
new names: rds/main/rds.json
clusters: cds/cds.json
extensions: ecds/lua/ecds.json
listeners: lds/lds.json`)

	const asksUpstream = `, typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http_protocol_options: {}}, http_filters: [{name: lua, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}, {name: codec, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec}}]}}}`
	s = fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, strings.TrimSuffix(fixture.Blue, "}")+asksUpstream, fixture.BlueEndpoints, fmt.Sprintf(extension, "green")))
	s.Want("a cluster has the filter", `
new names: ecds/lua/ecds.json
new names: eds/blue/eds.json
clusters: cds/cds.json`)

	s = fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), in, fmt.Sprintf(extension, "green")))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fixture.Blue, fixture.BlueEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), in, fmt.Sprintf(extension, "blue")))
	s.Want("it calls a cluster that comes", `
new names: eds/blue/eds.json
clusters: cds/cds.json
extensions: ecds/lua/ecds.json`)
}

// TestEditedByHand checks the publish after an edit of published files by hand. The publish keeps valid
// clusters of the edit until their trim, drops invalid ones, and does not fail.
func TestEditedByHand(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Layer))
	s.Publish()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(s.Options.Out, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const cluster = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", `
	write("cds/cds.json", `{"resources": [`+cluster+`"name": "old"}, `+cluster+`"name": "old"}, `+cluster+`"name": "good"}, `+cluster+`"name": "bad", "connect_timeout": "-3s"}, `+cluster+`"type": "STATIC"}]}`)
	write("lds/lds.json", `{"resources": [`+cluster+`"name": "stray"}]}`)
	write("rtds/copy/rtds.json", `{"resources": [{"@type": "type.googleapis.com/envoy.service.runtime.v3.Runtime", "name": "flags"}]}`)
	write("rtds/broken/rtds.json", "{")
	s.Publish()
	if got := fmt.Sprint(s.Clusters()); got != "[blue good]" {
		t.Errorf("clusters %s", got)
	}
	names, err := published.RuntimeLayers(s.Options.Out, render.JSON)
	if err == nil || !strings.Contains(err.Error(), "rtds/broken/rtds.json") {
		t.Errorf("a layer that can't be read: %v, %v", names, err)
	}
	if err := os.Remove(filepath.Join(s.Options.Out, "rtds/broken/rtds.json")); err != nil {
		t.Fatal(err)
	}
	if names, err := published.RuntimeLayers(s.Options.Out, render.JSON); err != nil || fmt.Sprint(names) != "[flags]" {
		t.Errorf("layers %v, %v", names, err)
	}
	s.Want("nothing changed", "")
}
