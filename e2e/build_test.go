package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"xdspub/render"
)

// TestBuildToBuild: what is published does not depend on the build. protojson and
// prototext space their output by a hash of the running binary, so builds that
// differ in anything show it.
func TestBuildToBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two more binaries")
	}
	t.Parallel()
	first := make(map[string]string)
	for i, flag := range []string{"", "-w -X main.build=a", "-w -X main.build=b"} {
		bin, out := binary, t.TempDir()
		if flag != "" {
			bin = filepath.Join(t.TempDir(), "xdspub")
			if _, stderr, exit := run(t, "go", "build", "-ldflags", flag, "-o", bin, "./cmd/xdspub"); exit != 0 {
				t.Fatal(stderr)
			}
		}
		for _, f := range render.Formats {
			if _, stderr, exit := run(t, bin, "render", "--out", filepath.Join(out, f.Name), "--format", f.Name, "--envoy-path", "/xds", "examples/quickstart"); exit != 0 {
				t.Fatal(stderr)
			}
			for _, file := range []string{"cds/cds", "lds/lds", "rds/ingress/rds", "eds/api/eds"} {
				name := filepath.Join(f.Name, file+"."+f.Name)
				data, err := os.ReadFile(filepath.Join(out, name))
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first[name] = string(data)
				} else if first[name] != string(data) {
					t.Errorf("%s differs between two builds:\n%s\n%s", name, first[name], data)
				}
			}
		}
	}
}
