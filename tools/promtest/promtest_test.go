package promtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/tools/envoytest"
	"xdspub/tools/promtest"
	"xdspub/tools/sh"
)

// TestStart: Prometheus scrapes itself, evaluates rules, and answers queries.
func TestStart(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(`groups: [{name: a, rules: [{alert: A, expr: up == 1, annotations: {summary: "{{ $value }}"}}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	promtest.Promtool(t, "", "check", "rules", rules)
	p := promtest.Start(t, fmt.Sprintf(`{global: {scrape_interval: 100ms, scrape_timeout: 100ms, evaluation_interval: 100ms}, rule_files: [%q],
scrape_configs: [{job_name: none, static_configs: [{targets: ["127.0.0.1:%d"]}]}]}`, rules, envoytest.FreePort(t)))
	envoytest.Eventually(t, time.Minute, "the target is down", func() (bool, string) {
		list := p.Query(t, `up{job="none"}`)
		return len(list) == 1 && list[0].Value == "0", fmt.Sprint(list)
	})
	if list := p.Alerts(t); len(list) > 0 {
		t.Error(list)
	}
}

// TestScript: scripts/prometheus prints XDSPUB_PROMETHEUS unchecked, and does not download with --no-install.
func TestScript(t *testing.T) {
	text, err := os.ReadFile("../../scripts/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "a checkout", "scripts", "prometheus")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	sh.Program(t, script, string(text))
	for _, tt := range []struct {
		variable string
		args     []string
		code     int
		output   string
	}{
		{"/opt/my prometheus", nil, 0, "/opt/my prometheus\n"},
		{"", []string{"--no-install"}, 3, "run scripts/prometheus once\n"},
		{"", []string{"2.42"}, 2, "usage: "},
	} {
		cmd := exec.Command(script, tt.args...)
		cmd.Env = append(os.Environ(), "XDSPUB_PROMETHEUS="+tt.variable)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.output) {
			t.Errorf("%q %v: exit status %d, %s", tt.variable, tt.args, code, out)
		}
	}
}
