package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// TestEveryType edits a resource of each type. The answers to the requests that use the resource change, and other
// answers do not.
func TestEveryType(t *testing.T) { inFormats(t, testEveryType) }

func testEveryType(t *testing.T, format string) {
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port, scoped, secure, added := envoytest.FreePort(t), envoytest.FreePort(t), envoytest.FreePort(t), envoytest.FreePort(t)
	first, second := newPair(t, "first"), newPair(t, "second")

	s := startFixture(t, everyType(blue.Port(), green.Port(), port, scoped, secure, first), "--format", format)

	text := func(r request) func() string { return func() string { return ask(t, r).text } }
	header := func(name string) func() string {
		return func() string { return ask(t, request{port: port}).header.Get(name) }
	}
	probes := map[string]func() string{
		"CDS":             text(request{port: port, path: "/cds"}),
		"EDS":             text(request{port: port, path: "/eds"}),
		"RTDS":            text(request{port: port, path: "/rtds"}),
		"VHDS":            text(request{port: port, host: "shop.example"}),
		"RDS":             text(request{port: port}),
		"red's scope":     text(request{port: scoped, header: "x-tenant: red"}),
		"the other scope": text(request{port: scoped, header: "x-tenant: other"}),
		"no scope":        text(request{port: scoped, header: "x-tenant: none"}),
		"ECDS":            header("X-Extension"),
		"LDS":             header("Server"),
		"a new listener":  func() string { return listens(added) },
		"SDS":             func() string { return peer(secure) },
	}
	// The answer to each kind of request. Each edit changes one of them.
	want := map[string]string{
		"CDS": "200 blue", "EDS": "200 blue", "RTDS": "200 blue", "VHDS": "200 blue", "RDS": "200 blue",
		"red's scope": "200 blue", "the other scope": "200 blue", "no scope": "404 ",
		"ECDS": "one", "LDS": "one", "a new listener": "refused", "SDS": "first",
	}
	asWanted := func(t *testing.T) {
		t.Helper()
		for name, probe := range probes {
			becomes(t, name, want[name], probe)
		}
		s.took(t, "rds/red", "rds/other") // the scopes have these routes inlined
	}
	asWanted(t)

	fromBlue, toGreen := `route: {cluster: "blue"}`, `route: {cluster: "green"}`
	for _, edit := range []struct {
		name, file, old, text string
		probe, becomes        string
	}{
		{"CDS", "cds.yaml", fmt.Sprint(blue.Port()), fmt.Sprint(green.Port()), "CDS", "200 green"},
		{"EDS", "eds.yaml", fmt.Sprint(blue.Port()), fmt.Sprint(green.Port()), "EDS", "200 green"},
		{"RTDS", "rtds.yaml", "numerator: 0", "numerator: 100", "RTDS", "200 green"},
		{"VHDS, inlined into its route configuration", "vhds.yaml", fromBlue, toGreen, "VHDS", "200 green"},
		{"RDS", "rds.yaml", fromBlue, toGreen, "RDS", "200 green"},
		{"RDS, inlined into its scope", "red.yaml", fromBlue, toGreen, "red's scope", "200 green"},
		{"SRDS", "srds.yaml", `string_key: "other"`, `string_key: "nobody"`, "the other scope", "404 "},
		{"SDS", "sds.yaml", certificate("certificate", first), certificate("certificate", second), "SDS", "second"},
		{"ECDS", "ecds.yaml", `"one"`, `"two"`, "ECDS", "two"},
		{"LDS", "lds.yaml", "server_name: one", "server_name: two", "LDS", "two"},
		{"LDS, a new listener", "listeners.yaml", "---\n", "---\n" + listener("added", added, rds("main")) + "---\n", "a new listener", "listens"},
	} {
		t.Run(edit.name, func(t *testing.T) {
			s.edit(t, edit.file, replace(edit.old, edit.text))
			want[edit.probe] = edit.becomes
			asWanted(t)
		})
	}
}

// everyType returns a tree with a resource of each type. Each of the two clusters has its own upstream.
func everyType(blue, green, port, scoped, secure int, first pair) map[string]string {
	var by strings.Builder // a route for each resource that decides an answer
	for _, name := range []string{"cds", "eds"} {
		fmt.Fprintf(&by, `{match: {prefix: /%[1]s}, route: {cluster: by-%[1]s}}, `, name)
	}
	by.WriteString(`{match: {prefix: /rtds, runtime_fraction: {default_value: {numerator: 0}, runtime_key: canary}}, route: {cluster: green}}`)
	return map[string]string{
		"clusters.yaml":  documents(staticCluster("blue", blue), staticCluster("green", green), edsCluster("by-eds")),
		"cds.yaml":       staticCluster("by-cds", blue),
		"eds.yaml":       endpoints("by-eds", blue),
		"rds.yaml":       document("envoy.config.route.v3.RouteConfiguration", `name: main, %s, vhds: {config_source: {ads: {}}}`, hosts("blue", by.String())),
		"vhds.yaml":      virtualHost("main", "shop", "shop.example", "blue"),
		"lds.yaml":       listener("main", port, rds("main"), "server_name: one", "http_filters: ["+discovered("marker", headerMutation)+", "+router+"]"),
		"ecds.yaml":      extension("marker", responseHeader("one")),
		"rtds.yaml":      runtimeLayer("flags", `{canary: {numerator: 0}}`),
		"listeners.yaml": documents(listener("scoped", scoped, srds("tenants")), tlsListener("secure", secure, downstreamTLS("certificate"), rds("main"))),
		"red.yaml":       routes("red", "blue"),
		"other.yaml":     routes("other", "blue"),
		"srds.yaml":      documents(scope("red", "red", "red"), scope("other", "other", "other")),
		"sds.yaml":       certificate("certificate", first),
	}
}

// listens says whether a process accepts connections on a port.
func listens(port int) string {
	c, err := net.Dial("tcp", address(port))
	if err != nil {
		return "refused"
	}
	c.Close()
	return "listens"
}

// peer returns the common name of the certificate of a TLS server, or the error.
func peer(port int) string {
	c, err := tls.Dial("tcp", address(port), &tls.Config{InsecureSkipVerify: true}) // the certificate is self-signed
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// TestScopes: xdspub inlines routes into scopes, also into scopes that Envoy fetches on demand, and into scopes in
// the listener itself. The listener no longer has the unused config source of routes.
func TestScopes(t *testing.T) { inFormats(t, testScopes) }

func testScopes(t *testing.T, format string) {
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	named, inline := envoytest.FreePort(t), envoytest.FreePort(t)
	onDemand := func(name string) string {
		return replace("key: {", "on_demand: true, key: {")(scope(name, name, name))
	}
	list := replace("scoped_rds: {scoped_rds_config_source: "+here+"}",
		`scoped_route_configurations_list: {scoped_route_configurations: [{name: red, route_configuration_name: red, key: {fragments: [{string_key: red}]}}]}`)(srds("inline"))
	s := startFixture(t, map[string]string{
		"clusters.yaml":  documents(staticCluster("blue", blue.Port()), staticCluster("green", green.Port())),
		"routes.yaml":    documents(routes("red", "blue"), routes("other", "blue")),
		"scopes.yaml":    documents(onDemand("red"), onDemand("other")),
		"listeners.yaml": documents(listener("named", named, srds("named")), listener("inline", inline, list)),
	}, "--format", format)
	both := func(want string) {
		t.Helper()
		for _, port := range []int{named, inline} {
			becomes(t, "red's scope", want, func() string { return ask(t, request{port: port, header: "x-tenant: red"}).text })
			becomes(t, "no scope", "404 ", func() string { return ask(t, request{port: port, header: "x-tenant: none"}).text })
		}
		s.took(t, "rds/red", "rds/other")
	}
	both("200 blue")
	s.edit(t, "routes.yaml", replace("blue", "green"))
	both("200 green")
}
