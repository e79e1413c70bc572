package publish

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The change that most tests publish: a cluster and a secret come, a cluster goes, and the listener changes and
// gets an inline key.
var (
	day1 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	day2 = day1.Add(24 * time.Hour)
)

func oldPlan() Plan {
	return Plan{
		Steps: []Step{{Name: "all", Write: []File{
			{Path: "sds/cert/sds.json", Data: []byte("cert 1"), Secret: true},
			{Path: "eds/web/eds.json", Data: []byte("web 1")},
			{Path: "eds/old/eds.json", Data: []byte("old 1")},
			{Path: "cds/cds.json", Data: []byte("cds 1")},
			{Path: "lds/lds.json", Data: []byte("lds 1")},
		}}},
		Manifest: Manifest{Format: "json", EDSMode: "file", Snapshot: "s1", Published: day1},
	}
}

func newPlan() Plan {
	return Plan{
		Steps: []Step{
			{Name: "new", Write: []File{
				{Path: "sds/mtls/sds.json", Data: []byte("mtls 2"), Secret: true},
				{Path: "eds/api/eds.json", Data: []byte("api 2")},
			}},
			{Name: "clusters", Write: []File{
				{Path: "eds/web/eds.json", Data: []byte("web 1")},
				{Path: "cds/cds.json", Data: []byte("cds 2")},
			}},
			{Name: "listeners", Write: []File{
				{Path: "sds/cert/sds.json", Data: []byte("cert 1"), Secret: true},
				{Path: "lds/lds.json", Data: []byte("lds 2"), Secret: true},
			}, Remove: []string{"eds/old/eds.json"}},
		},
		Manifest: Manifest{
			Format: "json", EDSMode: "file", Snapshot: "s2", Published: day2,
			Retired: []Retired{{Cluster: "old", Since: day2}},
		},
	}
}

func mustOpen(t *testing.T, out string, real disk) *Dir {
	t.Helper()
	d, err := open(out, Options{}, real)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() }) // a second Close returns an error
	return d
}

func mustPublish(t *testing.T, d *Dir, p Plan) Result {
	t.Helper()
	res, err := d.Publish(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// publishOnce opens out, publishes p, and closes out.
func publishOnce(t *testing.T, out string, p Plan) {
	t.Helper()
	d := mustOpen(t, out, &probe{root: out, quick: true})
	mustPublish(t, d, p)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// published returns the mode and the bytes of the files under out, by path, without .xdspub.
func published(t *testing.T, out string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == private && name != out {
				return fs.SkipDir
			}
			return nil
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(out, name)
		if err != nil {
			return err
		}
		if !fi.Mode().IsRegular() {
			files[rel] = fi.Mode().String()
			return nil
		}
		data, err := os.ReadFile(name)
		files[rel] = fi.Mode().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	oldFiles = map[string]string{
		"sds/cert/sds.json": "-rw-r----- cert 1",
		"eds/web/eds.json":  "-rw-r--r-- web 1",
		"eds/old/eds.json":  "-rw-r--r-- old 1",
		"cds/cds.json":      "-rw-r--r-- cds 1",
		"lds/lds.json":      "-rw-r--r-- lds 1",
	}
	newFiles = map[string]string{
		"sds/cert/sds.json": "-rw-r----- cert 1",
		"sds/mtls/sds.json": "-rw-r----- mtls 2",
		"eds/web/eds.json":  "-rw-r--r-- web 1",
		"eds/api/eds.json":  "-rw-r--r-- api 2",
		"cds/cds.json":      "-rw-r--r-- cds 2",
		"lds/lds.json":      "-rw-r----- lds 2",
	}
)

func checkPublished(t *testing.T, out string, want map[string]string) {
	t.Helper()
	if got := published(t, out); !maps.Equal(got, want) {
		t.Errorf("published %v, want %v", got, want)
	}
}

// checkPrivate fails the test if .xdspub has files that do not belong there.
func checkPrivate(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(out, private))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{"files", "intent", "lock", "manifest.json", "refused.json", "stage", "undo"}, e.Name()) {
			t.Errorf("%s/%s left over", private, e.Name())
		}
	}
	left, err := os.ReadDir(filepath.Join(out, stagePath))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the stage holds %v", left)
	}
}
