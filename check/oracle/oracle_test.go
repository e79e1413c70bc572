package oracle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xdspub/check/oracle"
	"xdspub/diag"
	"xdspub/envoy/trial"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/tools/sh"
)

func cluster(name, rest string) string {
	return fmt.Sprintf("---\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: %s\ntype: STATIC\n%s\n", name, rest)
}

// wrong is a setting of a cluster that Envoy refuses.
const wrong = "health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {send: {text: zz}}}]"

func listener(name, filters string) string {
	return fmt.Sprintf(`---
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: %s
address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
filter_chains:
- filters:
  - name: http
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: http
%s
`, name, filters)
}

const router = `      - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`

// tree reads a source tree of one file. Files with secrets may be missing.
func tree(t testing.TB, text string) oracle.Candidate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := load.New(load.Options{StubSecrets: true}).Load(t.Context(), path)
	if err != nil || loaded.Diagnostics.HasErrors() {
		t.Fatal(err, loaded.Diagnostics)
	}
	return oracle.Candidate{Snapshot: loaded.Snapshot(), Path: path}
}

func judge(t testing.TB, o *oracle.Oracle, c oracle.Candidate) diag.List {
	t.Helper()
	list, err := o.Judge(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// names returns the names of the resources in findings, with the codes.
func names(list diag.List) (names []string) {
	for _, d := range list {
		names = append(names, d.Resource.Name+" "+d.Code)
	}
	slices.Sort(names)
	return names
}

func real(t testing.TB) *oracle.Oracle {
	return oracle.New(trial.Envoy{Program: envoytest.Binary(t)})
}

// program writes a script that behaves like an Envoy. In the script, $config is the bootstrap.
func program(t testing.TB, script string) trial.Envoy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy")
	sh.Program(t, path, `#!/bin/sh
config=$(cat <&3)
taken() { echo "configuration '/dev/fd/3' OK"; exit 0; }
refused() { echo "error initializing configuration '/dev/fd/3': $1"; exit 1; }
`+script+"\n")
	return trial.Envoy{Program: path}
}

// TestFaults: the oracle finds each resource that Envoy refuses, and no resource that refers to it. Findings do not
// show a key.
func TestFaults(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		rest := ""
		if i == 3 || i == 17 {
			rest = wrong
		}
		text.WriteString(cluster(fmt.Sprint("c", i), rest))
	}
	text.WriteString(`---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: c1
endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: host.example, port_value: 1}}}}]}]
---
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r1
validate_clusters: true
virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: c3}}]}]
---
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r2
virtual_hosts: [{name: v, domains: ["*"]}, {name: w, domains: ["*"]}]
---
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: s1
tls_certificate: {certificate_chain: {inline_string: no certificate}, private_key: {inline_string: not to be shown}}
---
"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime
name: layer
layer: {a.b: 1}
`)
	text.WriteString(listener("l1", "      rds: {route_config_name: r1, config_source: {ads: {}}}\n      http_filters:\n"+router))
	text.WriteString(listener("l2", "      rds: {route_config_name: r2, config_source: {ads: {}}}\n      http_filters:\n"+router)) // the same address as l1
	list := judge(t, real(t), tree(t, text.String()))
	want := []string{"c1 envoy-refused", "c17 envoy-refused", "c3 envoy-refused", "l2 envoy-refused", "r2 envoy-refused", "s1 envoy-refused"}
	if got := names(list); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, d := range list {
		if d.Line == 0 || d.Severity != diag.Error || strings.Contains(d.String(), "not to be shown") || strings.Contains(d.Message, "xdspub-oracle") {
			t.Error(d)
		}
	}
}

// TestNothingHappens: Envoy runs no code of a resource, and no file is left.
func TestNothingHappens(t *testing.T) {
	for name, of := range map[string]func(testing.TB) *oracle.Oracle{"validate": real, "shadow": shadow} {
		t.Run(name, func(t *testing.T) { nothingHappens(t, of(t)) })
	}
}

func nothingHappens(t *testing.T, o *oracle.Oracle) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	act := filepath.Join(dir, "lua")
	lua := fmt.Sprintf(`      - {name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "os.execute('touch %[1]s')"}, source_codes: {x: {inline_string: "os.execute('touch %[1]s')"}}}}`, act)
	old := fmt.Sprintf(`      - {name: old, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, inline_code: "os.execute('touch %s')"}}`, act)
	text := listener("l", fmt.Sprintf("      access_log: [{name: file, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: %s/access}}]\n      route_config: {virtual_hosts: [{name: v, domains: [\"*\"], typed_per_filter_config: {lua: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute, source_code: {inline_string: \"os.execute('touch %s')\"}}}}]}\n      http_filters:\n%s\n%s\n%s", dir, act, lua, old, router)) +
		cluster("c", fmt.Sprintf("health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}, event_logger: [{name: file, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink, event_log_path: %s/events}}]}]", dir)) +
		cluster("specified", "") + `---
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: code
cluster_specifier_plugins: [{extension: {name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig, source_code: {inline_string: "os.execute('touch ` + act + `')"}}}}]
`
	list := judge(t, o, tree(t, text))
	if len(list) != 1 || !strings.Contains(list[0].Message, `Envoy was not asked about route configuration "code": Envoy would run their code`) {
		t.Error(list)
	}
	for _, dir := range []string{dir, os.TempDir()} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	}
}

// TestHiddenCode: the oracle does not judge a resource whose content xdspub can't read, because the content may be
// code that a newer Envoy runs. A Struct in the place of a Lua filter is such content.
func TestHiddenCode(t *testing.T) {
	act := filepath.Join(t.TempDir(), "lua")
	filter := func(typed string) string {
		return listener("l", "      route_config: {}\n      http_filters:\n      - {name: envoy.filters.http.lua, typed_config: {"+fmt.Sprintf(typed, "os.execute('touch "+act+"')")+"}}\n"+router)
	}
	const unread = `info: Envoy was not asked about listener "l": they hold what is unknown to xdspub`
	for typed, want := range map[string]string{
		`"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, value: {inline_code: "%s"}`:            "",
		`"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, value: {inline_code: "%s", newer: 1}`: unread,
		`"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.config.filter.http.lua.v2.Lua, value: {inline_code: "%s"}`:                 unread,
		`"@type": type.googleapis.com/google.protobuf.Struct, value: {inline_code: "%s"}`:                                                                                     unread,
	} {
		var got []string
		for _, d := range judge(t, real(t), tree(t, filter(typed))) {
			got = append(got, d.Severity.String()+": "+d.Message)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
		if _, err := os.Stat(act); err == nil {
			t.Fatalf("%s: the code has run", typed)
		}
	}
}

// TestNotAsked: a finding reports the resources that Envoy can't judge, once for each reason.
func TestNotAsked(t *testing.T) {
	secret := func(name, source string) string {
		return fmt.Sprintf("---\n\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\nname: %s\ngeneric_secret: {secret: {%s}}\n", name, source)
	}
	list := judge(t, real(t), tree(t, secret("stub", "filename: oracle.go")+secret("a", "filename: /none/a")+secret("b", "filename: /none/a")+secret("c", "environment_variable: XDSPUB_NOT_SET")+
		`---
"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration
name: scope
route_configuration_name: r
key: {fragments: [{string_key: a}]}
`))
	var got []string
	for _, d := range list {
		got = append(got, d.Severity.String()+": "+d.Message)
	}
	want := []string{
		`info: Envoy was not asked about scoped route configuration "scope": they can't be static`,
		`info: Envoy was not asked about secret "a", secret "b": the file "/none/a" is not here`,
		`info: Envoy was not asked about secret "c": the environment variable "XDSPUB_NOT_SET" is not set here`,
		`info: Envoy was not asked about secret "stub": the file "oracle.go" is not here`, // the file exists in the current directory, but Envoy may start in another
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCrash: the oracle finds a resource that crashes Envoy.
func TestCrash(t *testing.T) {
	o := oracle.New(program(t, `case $config in *boom*) kill -SEGV $$;; esac; taken`))
	list := judge(t, o, tree(t, cluster("a", "")+cluster("boom", "")+cluster("c", "")))
	if got := names(list); !slices.Equal(got, []string{"boom envoy-crashed"}) || !strings.Contains(list[0].Message, "Envoy dies of the cluster: signal: segmentation fault") {
		t.Error(list)
	}
}

// TestHang: the oracle ends an Envoy that hangs, and tries once more.
func TestHang(t *testing.T) {
	envoy := program(t, `echo >>$0-runs; case $config in *slow*) sleep 3600;; esac; taken`)
	envoy.Patience = time.Second
	list := judge(t, oracle.New(envoy), tree(t, cluster("slow", "")+cluster("b", "")))
	if got := names(list); !slices.Equal(got, []string{" envoy-crashed"}) || !strings.Contains(list[0].Message, "Envoy comes to no end with the resources: it did not end within 1s") {
		t.Error(list)
	}
	if runs, _ := os.ReadFile(envoy.Program + "-runs"); len(runs) > 2 { // on a busy machine, fewer start
		t.Errorf("%d runs", len(runs))
	}
}

// TestHangOnce: an Envoy that hangs once, as on a busy machine, causes no finding.
func TestHangOnce(t *testing.T) {
	t.Parallel()
	envoy := program(t, `[ -e $0-once ] || { : >$0-once; sleep 3600; }; taken`)
	envoy.Patience = 20 * time.Second // the second Envoy may need this long on a busy machine
	if list := judge(t, oracle.New(envoy), tree(t, cluster("a", ""))); len(list) > 0 {
		t.Error(list)
	}
}

// TestMany: the oracle finds at most 20 faults, and reports that there are more.
func TestMany(t *testing.T) {
	var text strings.Builder
	for i := range 30 {
		text.WriteString(cluster(fmt.Sprint("bad", i), "alt_stat_name: wrong"))
	}
	o := oracle.New(program(t, `case $config in *wrong*) refused "it is wrong";; esac; taken`))
	list := judge(t, o, tree(t, text.String()))
	if len(list) != 21 || list[0].Message != "Envoy refuses more than what is shown: it is wrong" {
		t.Error(len(list), list)
	}
}

// TestNoEnvoy: a program that is no Envoy causes an error and no finding.
func TestNoEnvoy(t *testing.T) {
	for script, want := range map[string]string{
		`refused "I refuse all"`: "a bootstrap without any resource is not taken: I refuse all",
		`kill -SEGV $$`:          "a bootstrap without any resource is not taken: signal: segmentation fault",
		"exit 0":                 "is it Envoy?",
	} {
		list, err := oracle.New(program(t, script)).Judge(t.Context(), tree(t, cluster("a", "")))
		if list != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", script, list, err)
		}
	}
	if _, err := oracle.New(trial.Envoy{Program: "/none/envoy"}).Judge(t.Context(), tree(t, cluster("a", ""))); err == nil {
		t.Error("no error")
	}
}

// TestRemembered: the oracle does not ask about equal resources again, even if they stand at other places. It asks
// again after a change of the program, or of a file that a resource names.
func TestRemembered(t *testing.T) {
	script := `echo >>$0-runs; case $config in *wrong*) refused "it is wrong";; esac; taken`
	envoy := program(t, script)
	o := oracle.New(envoy)
	runs := 0
	expect := func(what string, c oracle.Candidate, again bool) diag.List {
		t.Helper()
		list := judge(t, o, c)
		now, err := os.ReadFile(envoy.Program + "-runs")
		if err != nil || len(now) > runs != again {
			t.Errorf("%s: %d runs after %d, %v", what, len(now), runs, err)
		}
		runs = len(now)
		return list
	}
	named := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		if err := os.WriteFile(named, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	secret := "---\n\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\nname: s\ngeneric_secret: {secret: {filename: " + named + "}}\n"
	text := cluster("a", "alt_stat_name: wrong") + secret
	first := expect("the first time", tree(t, text), true)
	c := tree(t, "# moved\n"+text)
	moved := expect("moved", c, false)
	if len(first) != 1 || len(moved) != 1 || moved[0].Line != first[0].Line+1 || moved[0].File != c.Path {
		t.Error(first, moved)
	}
	write("22")
	expect("another file", c, true)
	expect("the same file", c, false)
	sh.Program(t, envoy.Program, "#!/bin/sh\nconfig=$(cat <&3)\necho >>$0-runs; echo \"configuration '/dev/fd/3' OK\"\n")
	if list := expect("another program", c, true); len(list) > 0 {
		t.Error(list)
	}
	expect("another tree", tree(t, cluster("b", "")), true)
}

// BenchmarkJudge measures the time that the oracle adds to a check.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		var text strings.Builder
		for i := range n {
			text.WriteString(cluster(fmt.Sprint("c", i), ""))
		}
		c := tree(b, text.String())
		envoy := trial.Envoy{Program: envoytest.Binary(b)}
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			for b.Loop() {
				if list := judge(b, oracle.New(envoy), c); len(list) > 0 {
					b.Fatal(list)
				}
			}
		})
		b.Run(fmt.Sprintf("clusters=%d,again", n), func(b *testing.B) {
			o := oracle.New(envoy)
			judge(b, o, c)
			for b.Loop() {
				judge(b, o, c)
			}
		})
	}
}
