package publish

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestManifestOnDisk(t *testing.T) {
	out := t.TempDir()
	zone := time.FixedZone("CEST", 2*60*60)
	m := Manifest{
		Format: "json", EnvoyPath: "/etc/envoy/xds", EDSMode: "file", Snapshot: "s1", Published: day1.In(zone),
		Retired: []Retired{{Cluster: "old", Since: day1.In(zone)}, {File: "eds/old/eds.json", Since: day1}},
	}
	publishOnce(t, out, Plan{Manifest: m})
	data, err := os.ReadFile(filepath.Join(out, manifestPath))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "layout": 1,
  "format": "json",
  "envoy_path": "/etc/envoy/xds",
  "eds_mode": "file",
  "snapshot": "s1",
  "published": "2026-05-01T12:00:00Z",
  "going": [
    {
      "cluster": "old",
      "since": "2026-05-01T12:00:00Z"
    },
    {
      "file": "eds/old/eds.json",
      "since": "2026-05-01T12:00:00Z"
    }
  ]
}
`
	if string(data) != want {
		t.Errorf("manifest %s, want %s", data, want)
	}
}

// TestManifestDuring checks the record before each move of a publish.
func TestManifestDuring(t *testing.T) {
	file := Retired{File: "eds/old/eds.json", Since: day1}
	for _, tt := range []struct {
		name         string
		before, want []Retired
	}{
		// Until the plan has ended, a listener may still name the cluster.
		{"goes now", nil, []Retired{{Cluster: "old"}}},
		{"goes since a plan that was killed", []Retired{{Cluster: "old"}}, []Retired{{Cluster: "old"}}},
		// What was retired stays retired, and the record keeps a file until it is removed. The plan does not
		// say which of the two is still in use, so the file has no time.
		{"was going", []Retired{file, {Cluster: "old", Since: day1}}, []Retired{{Cluster: "old", Since: day2}, {File: file.File}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := t.TempDir()
			old := oldPlan()
			old.Manifest.Retired = tt.before
			publishOnce(t, out, old)
			moves := 0
			d := mustOpen(t, out, &probe{root: out, fault: func(_ int, call string) error {
				if strings.HasPrefix(call, "rename") && !strings.HasPrefix(call[strings.LastIndex(call, " "):], " "+private) || strings.HasPrefix(call, "remove eds") {
					moves++
					m, err := ReadManifest(out)
					if err != nil {
						t.Error(err)
					}
					if m.Snapshot != "s1" || !m.Published.Equal(day1) || !slices.Equal(m.Retired, tt.want) {
						t.Errorf("at %s: %+v, want going %v", call, m, tt.want)
					}
				}
				return nil
			}})
			mustPublish(t, d, newPlan())
			if moves != 5 {
				t.Errorf("%d moves, want 5", moves)
			}
			if m, err := ReadManifest(out); err != nil || !slices.Equal(m.Retired, newPlan().Manifest.Retired) {
				t.Errorf("manifest %+v, %v", m, err)
			}
		})
	}
}

func TestBadManifest(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "damaged: unexpected end of JSON input (remove the file"},
		{"cut", `{"layout": 1, "form`, "damaged: unexpected end of JSON input (remove the file"},
		{"tail", `{"layout": 1} {}`, "damaged: invalid character '{' after top-level value"},
		{"no layout", `{"format": "json"}`, "damaged: no layout"},
		{"going", `{"layout": 1, "going": [{}]}`, "damaged: manifest: retired {Cluster: File:"},
		{"newer", `{"layout": 3, "going": {}}`, "layout 3 is newer than this program's 2: use the newer program"},
		{"newer alike", `{"layout": 3}`, "layout 3 is newer than this program's 2: use the newer program"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			publishOnce(t, out, oldPlan())
			if err := os.WriteFile(filepath.Join(out, manifestPath), []byte(tt.data), 0o644); err != nil {
				t.Fatal(err)
			}
			want := "read " + filepath.Join(out, manifestPath) + ": " + tt.want
			if _, err := ReadManifest(out); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
			d := mustOpen(t, out, osDisk{})
			if _, err := d.Publish(context.Background(), newPlan()); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("Publish: error %v, want %s", err, want)
			}
			checkPublished(t, out, oldFiles)
			checkPrivate(t, out)
		})
	}
}

// BenchmarkDuring measures the record of a change in which all retired files come back, and as many files are
// retired.
func BenchmarkDuring(b *testing.B) {
	for _, n := range []int{1_000, 2_000, 4_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var m, prev Manifest
			for i := range n {
				m.Retired = append(m.Retired, Retired{Cluster: fmt.Sprint("new", i)})
				prev.Retired = append(prev.Retired, Retired{Cluster: fmt.Sprint("old", i), Since: day1})
			}
			for b.Loop() {
				if got := len(m.during(prev).Retired); got != 2*n {
					b.Fatal(got)
				}
			}
		})
	}
}
