package schemas

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// example returns a file of examples/monitoring.
func example(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../examples/monitoring/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestServiceMonitor holds the manifests for the Prometheus Operator to the types of its API, and the ServiceMonitor to
// the Service.
func TestServiceMonitor(t *testing.T) {
	service, monitor, _ := bytes.Cut(example(t, "kubernetes/servicemonitor.yaml"), []byte("---\n"))
	var s corev1.Service
	var m monitoringv1.ServiceMonitor
	if err := yaml.UnmarshalStrict(service, &s); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(monitor, &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != monitoringv1.SchemeGroupVersion.String() || m.Kind != monitoringv1.ServiceMonitorsKind {
		t.Errorf("it is a %s of %s", m.Kind, m.APIVersion)
	}
	for key, value := range m.Spec.Selector.MatchLabels {
		if s.Labels[key] != value {
			t.Errorf("the ServiceMonitor selects %s: %s, and the Service has %q", key, value, s.Labels[key])
		}
	}
	if port := m.Spec.Endpoints[0].Port; port != s.Spec.Ports[0].Name {
		t.Errorf("the ServiceMonitor scrapes the port %s, and the Service has %s", port, s.Spec.Ports[0].Name)
	}
}

// TestPrometheusRule holds the alert rules to the type of a PrometheusRule.
func TestPrometheusRule(t *testing.T) {
	var spec monitoringv1.PrometheusRuleSpec
	text := example(t, "rules.yaml")
	if err := yaml.UnmarshalStrict(text, &spec); err != nil || len(spec.Groups) == 0 || len(spec.Groups[0].Rules) == 0 {
		t.Error(err, spec)
	}
	if yaml.UnmarshalStrict(bytes.Replace(text, []byte("annotations:"), []byte("anotations:"), 1), &spec) == nil {
		t.Error("the type takes any key")
	}
}

// TestDashboard holds the dashboard to Grafana's schema.
func TestDashboard(t *testing.T) {
	text := string(example(t, "dashboard.json"))
	check := func(text string) error {
		var d dashboard.Dashboard
		err := d.UnmarshalJSONStrict([]byte(text))
		if list, ok := errors.AsType[cog.BuildErrors](err); err != nil && (!ok || len(list) > 0) { // success is an empty list
			return err
		}
		return d.Validate()
	}
	if err := check(text); err != nil {
		t.Error(err)
	}
	for old, wrong := range map[string]string{`"gridPos": {`: `"gridPosition": {`, `"schemaVersion": 39`: `"schemaVersion": "39"`} {
		if check(strings.Replace(text, old, wrong, 1)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}
}
