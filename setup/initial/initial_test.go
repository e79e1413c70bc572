package initial

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// file returns the content of one of the files.
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

// TestContents: each file below the folder files is in the list, with a purpose.
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

// TestKubernetes: the deployment mounts the ConfigMaps of the kustomization, which have all files of config/.
// tools/schemas checks the deployment against the types of the API.
func TestKubernetes(t *testing.T) {
	type mounts struct{ VolumeMounts []struct{ Name string } }
	var d struct {
		Spec struct {
			Template struct {
				Spec struct {
					Volumes []struct {
						Name      string
						ConfigMap struct{ Name string }
					}
					InitContainers, Containers []mounts
				}
			}
		}
	}
	if err := yaml.Unmarshal(file(t, "kubernetes/deployment.yaml"), &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	volumes := make(map[string]string) // the ConfigMap of each volume
	for _, v := range pod.Volumes {
		volumes[v.Name] = v.ConfigMap.Name
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if _, there := volumes[m.Name]; !there {
				t.Errorf("a container mounts %s, which is no volume", m.Name)
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

// TestWorkflow: docs/ci.md shows the same job as the file.
func TestWorkflow(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	if job := file(t, ".github/workflows/xdspub.yaml"); !strings.Contains(string(page), "```yaml\n"+string(job)+"```\n") {
		t.Errorf("docs/ci.md does not show\n%s", job)
	}
}
