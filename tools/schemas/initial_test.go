package schemas

import (
	"os"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// initial returns a file that xdspub init writes.
func initial(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../setup/initial/files/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCompose: the Compose file is valid by the schema of the Compose specification.
func TestCompose(t *testing.T) {
	check := func(text []byte) error {
		var file map[string]any
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(file)
	}
	text := initial(t, "compose.yaml")
	if err := check(text); err != nil {
		t.Error(err)
	}
	if check([]byte(strings.Replace(string(text), "cap_drop", "cap_dorp", 1))) == nil {
		t.Error("the schema takes any key")
	}
}

// TestKubernetes: the manifest has only fields of the types of the Kubernetes API.
func TestKubernetes(t *testing.T) {
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(initial(t, "kubernetes/deployment.yaml"), &d); err != nil {
		t.Fatal(err)
	}
	if d.APIVersion != "apps/v1" || d.Kind != "Deployment" {
		t.Errorf("it is a %s of %s", d.Kind, d.APIVersion)
	}
	if pod := d.Spec.Template; d.Spec.Selector.MatchLabels["app"] != pod.Labels["app"] {
		t.Errorf("the selector %v does not select %v", d.Spec.Selector.MatchLabels, pod.Labels)
	}
}
