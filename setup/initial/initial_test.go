package initial

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// file returns one of the files.
func file(t *testing.T, path string) []byte {
	t.Helper()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("there is no %s", path)
	}
	return files[i].Data
}

// TestContents: each file that was written by hand is one of the list, with a purpose.
func TestContents(t *testing.T) {
	var listed []string
	for _, c := range contents {
		if c.purpose == "" {
			t.Errorf("what is %s?", c.path)
		}
		if c.make == nil {
			listed = append(listed, "files/"+c.path)
		}
	}
	err := fs.WalkDir(written, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !slices.Contains(listed, path) {
			t.Errorf("%s is in no directory", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCompose holds the Compose file to the schema of its specification.
func TestCompose(t *testing.T) {
	check := func(text []byte) error {
		var file map[string]any
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(file)
	}
	text := file(t, "compose.yaml")
	if err := check(text); err != nil {
		t.Error(err)
	}
	if check([]byte(strings.Replace(string(text), "cap_drop", "cap_dorp", 1))) == nil {
		t.Error("the schema takes any key")
	}
}

// TestKubernetes holds the manifest to the types of the API.
func TestKubernetes(t *testing.T) {
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(file(t, "kubernetes/deployment.yaml"), &d); err != nil {
		t.Fatal(err)
	}
	if d.APIVersion != "apps/v1" || d.Kind != "Deployment" {
		t.Errorf("it is a %s of %s", d.Kind, d.APIVersion)
	}
	if pod := d.Spec.Template; d.Spec.Selector.MatchLabels["app"] != pod.Labels["app"] {
		t.Errorf("the selector %v does not select %v", d.Spec.Selector.MatchLabels, pod.Labels)
	}
	volumes := make(map[string]string) // the ConfigMap of each
	for _, v := range d.Spec.Template.Spec.Volumes {
		volumes[v.Name] = ""
		if v.ConfigMap != nil {
			volumes[v.Name] = v.ConfigMap.Name
		}
	}
	for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			if _, there := volumes[m.Name]; !there {
				t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
	}

	var k struct {
		APIVersion, Kind   string
		Resources          []string
		ConfigMapGenerator []struct {
			Name    string
			Files   []string
			Options struct {
				DisableNameSuffixHash bool `json:"disableNameSuffixHash"`
			}
		}
	}
	if err := yaml.UnmarshalStrict(file(t, "kustomization.yaml"), &k); err != nil {
		t.Fatal(err)
	}
	for _, path := range k.Resources {
		file(t, path)
	}
	var maps, config []string
	for _, m := range k.ConfigMapGenerator {
		maps = append(maps, m.Name)
		for _, path := range m.Files {
			file(t, path)
			config = append(config, path)
		}
	}
	if !slices.Contains(maps, volumes["config"]) || !slices.Contains(maps, volumes["bootstrap"]) {
		t.Errorf("the pod asks for the ConfigMaps %v, and there are %v", volumes, maps)
	}
	for _, c := range contents {
		if strings.HasPrefix(c.path, "config/") && !slices.Contains(config, c.path) {
			t.Errorf("%s does not reach the pod", c.path)
		}
	}
}

// TestWorkflow: docs/ci.md shows the job as it is written.
func TestWorkflow(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	if job := file(t, ".github/workflows/xdspub.yaml"); !strings.Contains(string(page), "```yaml\n"+string(job)+"```\n") {
		t.Errorf("docs/ci.md does not show\n%s", job)
	}
}
