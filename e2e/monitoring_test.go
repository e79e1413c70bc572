package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"xdspub/render/publish"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/promtest"
	"xdspub/xds"
)

// monitoring is the folder of the example.
var monitoring = filepath.Join(root, "examples", "monitoring")

// TestMonitoringExample types the commands of the README. promtool takes the rules and their tests.
func TestMonitoringExample(t *testing.T) {
	t.Parallel()
	promtest.Promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(monitoring, "rules.yaml"))
	e := newExample(t, "monitoring", 9900, 9090)
	e.line(t, "go build -o bin/ ./cmd/xdspub") // by TestMain
	e.start(t, "bin/xdspub watch --http 9900 --out /tmp/monitored examples/quickstart").WaitLog(t, "event=published ")
	const prometheus = `"$(scripts/prometheus)" --config.file examples/monitoring/prometheus.yaml --web.listen-address 127.0.0.1:9090 --storage.tsdb.path /tmp/prometheus`
	e.start(t, prometheus)
	promtest.At("http://"+e.moved.Replace("127.0.0.1:9090")).Until(t, "scrapes xdspub, with the job that the rules expect", `up{job="xdspub"} == 1 and on (instance) xdspub_build_info`)
	if out := e.run(t, `"$(dirname "$(scripts/prometheus)")/promtool" test rules examples/monitoring/rules_test.yaml`); !strings.Contains(out, "SUCCESS") {
		t.Error(out)
	}
	const operator = `(printf 'apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: xdspub}\nspec:\n'; sed 's/^/  /' examples/monitoring/rules.yaml) > /tmp/prometheusrule.yaml`
	e.run(t, operator)
	var rule struct {
		Kind string
		Spec struct{ Groups []struct{ Rules []any } }
	}
	text, err := os.ReadFile(e.moved.Replace("/tmp/prometheusrule.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &rule)
	}
	if err != nil || rule.Kind != "PrometheusRule" || len(rule.Spec.Groups) != 1 || len(rule.Spec.Groups[0].Rules) < 10 {
		t.Errorf("%v\n%s", err, text)
	}
	e.allDone(t)
}

// incident is one process of xdspub with the faults that a test makes.
type incident struct {
	name string
	// begin starts the process without a fault. The process answers HTTP at address, by the scheme.
	begin  func(t *testing.T, address string)
	scheme string
	// happen makes the fault. nil means a quiet day with a change.
	happen func(t *testing.T)
	alerts []string // the alerts that must fire while the fault lasts; no other may
	// mend ends the fault, so that the alerts end, too. nil means that the fault stays.
	mend func(t *testing.T)
}

// watchIncident returns an incident of a watch. flags may be nil.
func watchIncident(name string, s *fixture, flags func(t *testing.T) []string, happen, mend func(t *testing.T), alerts ...string) *incident {
	return &incident{name: name, alerts: alerts, happen: happen, mend: mend, scheme: "http", begin: func(t *testing.T, address string) {
		args := []string{"--http", address, "--rescan", "500ms"}
		if flags != nil {
			args = append(args, flags(t)...)
		}
		s.startWatch(t, args...)
	}}
}

// TestMonitoring plays incidents on real processes, which a real Prometheus scrapes with the rules of
// examples/monitoring: each incident fires its alerts and no others, and a quiet day fires none. During the incidents,
// each query of the dashboard has a result. Only the times of the rules are shorter.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	var all []*incident
	blue := func() *fixture { return newFixture(t, map[string]string{"blue.yaml": aCluster("blue")}) }
	withEnvoy := func(s *fixture) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			s.publish(t)
			s.startEnvoy(t)
			return []string{"--envoy-admin", "http://" + address(s.admin), "--ack-timeout", ackTimeout.String()}
		}
	}
	remove := func(s *fixture, name string) func(t *testing.T) {
		return func(t *testing.T) {
			if err := os.Remove(filepath.Join(s.src, name)); err != nil {
				t.Fatal(err)
			}
		}
	}

	quiet := blue()
	all = append(all, watchIncident("quiet watch", quiet, withEnvoy(quiet), nil, nil))
	changes := func(t *testing.T, name string) { quiet.write(t, "blue.yaml", aCluster(name)) }

	refused := blue()
	all = append(all, watchIncident("tree refused", refused, nil,
		func(t *testing.T) { refused.write(t, "bad.yaml", "name: x") }, remove(refused, "bad.yaml"), "XdspubSourceRefused"))

	failed := blue()
	all = append(all, watchIncident("settings broken", failed, nil,
		func(t *testing.T) { failed.write(t, "xdspub.yaml", "no-such-setting: 7") }, remove(failed, "xdspub.yaml"), "XdspubSourceFailed"))

	down := blue()
	all = append(all, watchIncident("Envoy down", down, withEnvoy(down),
		func(t *testing.T) { down.envoy.Stop(t) }, func(t *testing.T) { down.startEnvoy(t) }, "XdspubEnvoyDown"))

	held := blue()
	busy, _ := takePort(t)
	all = append(all, watchIncident("held", held, withEnvoy(held),
		func(t *testing.T) {
			held.write(t, "busy.yaml", documents(routes("main", "blue"), listener("edge", busy, rds("main"))))
			held.watch.WaitLog(t, "code=refused-by-envoy")
		}, remove(held, "busy.yaml"), "XdspubSnapshotHeld"))

	drift := blue()
	all = append(all, watchIncident("drift", drift, nil,
		func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(drift.out, "cds/cds.json"), []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
			drift.watch.WaitLog(t, "event=drift-mended")
		}, nil, "XdspubDriftMended"))

	expires := blue()
	soon, late := time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(1000*time.Hour).Truncate(time.Second)
	expires.writeCertificate(t, late)
	all = append(all, watchIncident("certificate about to expire", expires, nil,
		func(t *testing.T) { expires.writeCertificate(t, soon) }, func(t *testing.T) { expires.writeCertificate(t, late) }, "XdspubCertificateExpiresSoon"))

	expired := blue()
	all = append(all, watchIncident("certificate expired", expired, nil,
		func(t *testing.T) { expired.writeCertificate(t, time.Now().Add(-time.Hour)) }, remove(expired, "blue.yaml"), "XdspubCertificateOutOfDate"))
	expired.write(t, "green.yaml", aCluster("green"))

	byTLS, ca, files := blue(), certs.NewAuthority(t), pems{t, t.TempDir()}
	server := func(until time.Time) func(t *testing.T) {
		return func(*testing.T) {
			cert, key := ca.SignUntil(until, 2, "xds.example")
			files.write("server", cert, key)
		}
	}
	tls := watchIncident("certificate of the HTTP server", byTLS, func(t *testing.T) []string {
		server(late)(t)
		return []string{"--tls-cert", files.path("server.pem"), "--tls-key", files.path("server.key")}
	}, server(soon), server(late), "XdspubServerCertificateExpiresSoon")
	tls.scheme = "https"
	all = append(all, tls)

	stale := blue()
	all = append(all, watchIncident(notPublishedForLong, stale, nil,
		func(t *testing.T) { stale.write(t, "bad.yaml", "name: x") }, remove(stale, "bad.yaml"), "XdspubNothingPublished", "XdspubSourceRefused"))

	paused := blue()
	all = append(all, watchIncident("paused", paused, nil,
		func(t *testing.T) {
			paused.pause(t)
			paused.write(t, "blue.yaml", aCluster("green"))
		},
		func(t *testing.T) {
			if stdout, stderr, exit := xdspub(t, "resume", "--out", paused.out); exit != 0 {
				t.Errorf("resume: exit status %d\n%s%s", exit, stdout, stderr)
			}
		}, "XdspubWaits"))

	stuck := blue()
	all = append(all, watchIncident("undo failed", stuck, func(*testing.T) []string { return []string{"--confirm-within", "1h"} }, stuck.undoFails,
		func(t *testing.T) {
			m, err := publish.ReadManifest(stuck.out)
			if err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, exit := xdspub(t, "confirm", "--out", stuck.out, m.Snapshot); exit != 0 {
				t.Errorf("confirm: exit status %d\n%s%s", exit, stdout, stderr)
			}
		}, "XdspubUndoOverdue"))

	killed := blue()
	all = append(all, watchIncident("killed", killed, nil, func(t *testing.T) {
		killed.watch.Signal(t, syscall.SIGKILL)
		killed.watch.Wait(t)
	}, nil, "XdspubDown"))

	never := newFixture(t, map[string]string{"bad.yaml": "name: x"})
	all = append(all, &incident{name: "nothing published", scheme: "http", alerts: []string{"XdspubNothingPublished", "XdspubSourceRefused"},
		begin: func(t *testing.T, address string) {
			never.beginWatch(t, "--http", address)
			never.watch.WaitLog(t, "event=source-invalid")
		},
		happen: func(*testing.T) {},
		mend:   func(t *testing.T) { never.write(t, "bad.yaml", aCluster("blue")) },
	})

	serving := func(name, answer string, happen func(t *testing.T, s *served), mend func(t *testing.T, s *served), alerts ...string) *served {
		s := newServed(t)
		i := &incident{name: name, scheme: "https", alerts: alerts, begin: func(t *testing.T, address string) {
			s.run("--http", address)
			s.connect(xds.Cluster, answer)
		}}
		if happen != nil {
			i.happen = func(t *testing.T) { happen(t, s) }
		}
		if mend != nil {
			i.mend = func(t *testing.T) { mend(t, s) }
		}
		all = append(all, i)
		return s
	}
	calm := serving("quiet serve", acks, nil, nil)
	edit := func(t *testing.T, s *served) {
		s.write(t, "cluster.yaml", `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 2s}`)
	}
	serving("clients NACK", nacks, edit, nil, "XdspubClientsReject")
	serving("clients silent", silent, edit, nil, "XdspubClientsBehind")
	serving("certificate of the server", acks, func(_ *testing.T, s *served) { s.certificate(time.Now().Add(time.Hour)) },
		func(_ *testing.T, s *served) { s.certificate(time.Now().Add(1000 * time.Hour)) }, "XdspubServerCertificateExpiresSoon")

	var targets strings.Builder
	for _, i := range all {
		at := address(envoytest.FreePort(t))
		i.begin(t, at)
		fmt.Fprintf(&targets, "  - {targets: [%q], labels: {incident: %q, __scheme__: %s}}\n", at, i.name, i.scheme)
	}
	p := promtest.Start(t, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
- job_name: xdspub
  tls_config: {insecure_skip_verify: true}
  static_configs:
%s`, quickRules(t), &targets))
	envoytest.Eventually(t, patience, "all are scraped, and nothing but what was never published fires", func() (bool, string) {
		list := p.Query(t, "up == 1")
		is := firing(t, p)
		delete(is, "nothing published")
		return len(list) == len(all) && len(is) == 0, fmt.Sprint(len(list), is)
	})

	want := make(map[string][]string)
	for _, i := range all {
		if i.happen != nil {
			i.happen(t)
			want[i.name] = i.alerts
		}
	}
	changes(t, "green")
	edit(t, calm)
	envoytest.Eventually(t, patience, "each incident fires its alerts", func() (bool, string) {
		is := firing(t, p)
		return maps.EqualFunc(is, want, slices.Equal), fmt.Sprint(is)
	})
	for _, a := range p.Alerts(t) {
		if text := fmt.Sprint(a.Annotations); strings.Contains(text, "error expanding") || a.Annotations["summary"] == "" || a.Annotations["runbook_url"] == "" {
			t.Errorf("%s: %s", a.Labels["alertname"], text)
		}
	}
	expiry := p.Query(t, `xdspub_snapshot_certificate_expiry_time_seconds{incident="certificate about to expire"}`)
	if len(expiry) != 1 || expiry[0].Value != fmt.Sprint(soon.Unix()) {
		t.Errorf("the first certificate expires at %v, want %d", expiry, soon.Unix())
	}
	dashboardHasResults(t, p)

	for _, i := range all {
		if i.mend != nil {
			i.mend(t)
			delete(want, i.name)
		}
	}
	delete(want, "drift") // ends by itself
	changes(t, "red")
	envoytest.Eventually(t, patience, "the alerts of mended incidents end", func() (bool, string) {
		is := firing(t, p)
		return maps.EqualFunc(is, want, slices.Equal), fmt.Sprint(is)
	})
	// On a busy machine, a scrape or an answer of Envoy may take seconds, which is less than the minutes of rules.yaml.
	// 20 evaluations are 10 s. XdspubDriftMended does not wait.
	for _, query := range []string{
		`count_over_time(ALERTS{incident=~"quiet.*", alertstate="firing"}[1h]) > 20`,
		`count_over_time(ALERTS{incident=~"quiet.*", alertname="XdspubDriftMended"}[1h])`,
	} {
		if list := p.Query(t, query); len(list) > 0 {
			t.Errorf("a quiet day fires %v", list)
		}
	}
}

// notPublishedForLong is the only incident for which 5 s without a success are long: a pass of the other processes may
// take that time on a busy machine.
const notPublishedForLong = "nothing published for long"

// quickRules returns the path of a copy of rules.yaml with shorter times.
func quickRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`for: \d+m\n`).ReplaceAll(text, []byte("for: 3s\n"))
	text = regexp.MustCompile(`\[15m\]`).ReplaceAll(text, []byte("[10s]"))
	const success = "xdspub_last_success_time_seconds"
	text = bytes.Replace(text, []byte("time() - "+success+" > 3600"), fmt.Appendf(nil, "time() - %s{incident=%q} > 5", success, notPublishedForLong), 1)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// firing returns the sorted names of the firing alerts, by incident.
func firing(t *testing.T, p *promtest.Prometheus) map[string][]string {
	t.Helper()
	is := make(map[string][]string)
	for _, a := range p.Alerts(t) {
		if of := a.Labels["incident"]; a.State == "firing" {
			is[of] = append(is[of], a.Labels["alertname"])
		}
	}
	for _, names := range is {
		slices.Sort(names)
	}
	return is
}

// dashboardHasResults fails if Prometheus has no result for a query of the dashboard.
func dashboardHasResults(t *testing.T, p *promtest.Prometheus) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	asked := 0
	has := func(title, expr string) {
		asked++
		expr = strings.NewReplacer("$instance", ".+", "$__rate_interval", "10s").Replace(expr)
		if len(p.Query(t, expr)) == 0 {
			t.Errorf("%s: no result of %s", title, expr)
		}
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			has(panel.Title, target.Expr)
		}
	}
	for _, a := range dashboard.Annotations.List {
		has(a.Name, a.Expr)
	}
	if asked < 29 {
		t.Errorf("the dashboard has only %d queries", asked)
	}
}
