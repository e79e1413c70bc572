package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/report"
)

// finding returns a finding with all fields.
func finding() diag.Diagnostic {
	return diag.Diagnostic{
		Code: "unknown-field", Position: diag.Position{File: "a.yaml", Line: 3, Column: 1}, End: diag.End{EndLine: 3, EndColumn: 4},
		Resource: diag.Resource{Type: "type.googleapis.com/x.Cluster", Name: "a"}, Path: `hosts[3].metadata["k[1]"]`, Message: "unknown field",
	}
}

func rootAt(t *testing.T, dir string) *report.Root {
	t.Helper()
	root, err := report.NewRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFingerprints(t *testing.T) {
	t.Chdir(t.TempDir())
	root := rootAt(t, ".")
	was := report.Fingerprints(diag.List{finding()}, root)[0]
	if hash, count, ok := strings.Cut(was, ":"); len(hash) != 32 || count != "1" || !ok {
		t.Errorf("%s is no hash with a count", was)
	}
	for name, change := range map[string]func(*diag.Diagnostic){
		"lines":    func(d *diag.Diagnostic) { d.Line, d.EndLine = 40, 41 },
		"columns":  func(d *diag.Diagnostic) { d.Column, d.EndColumn = 5, 8 },
		"check":    func(d *diag.Diagnostic) { d.Code = diag.SubCode(d.Code, "in-a-list") }, // the rule gets Checks
		"severity": func(d *diag.Diagnostic) { d.Severity = diag.Warning },
		"help":     func(d *diag.Diagnostic) { d.Help = "write it otherwise" },
		"related":  func(d *diag.Diagnostic) { d.Related = []diag.Related{{Message: "here"}} },
		"element":  func(d *diag.Diagnostic) { d.Path = strings.Replace(d.Path, "hosts[3]", "hosts[4]", 1) },
		"absolute": func(d *diag.Diagnostic) { d.File, _ = filepath.Abs(d.File) },
	} {
		d := finding()
		change(&d)
		if is := report.Fingerprints(diag.List{d}, root)[0]; is != was {
			t.Errorf("%s: %s is another finding than %s", name, is, was)
		}
	}
	for name, change := range map[string]func(*diag.Diagnostic){
		"code":     func(d *diag.Diagnostic) { d.Code = "bad-field" },
		"file":     func(d *diag.Diagnostic) { d.File = "b.yaml" },
		"type":     func(d *diag.Diagnostic) { d.Resource.Type = "type.googleapis.com/x.Listener" },
		"name":     func(d *diag.Diagnostic) { d.Resource.Name = "b" },
		"field":    func(d *diag.Diagnostic) { d.Path = strings.Replace(d.Path, "hosts", "addresses", 1) },
		"message":  func(d *diag.Diagnostic) { d.Message = "no such field" },
		"boundary": func(d *diag.Diagnostic) { d.Resource = diag.Resource{Type: d.Resource.Type + "a"} },
	} {
		d := finding()
		change(&d)
		if is := report.Fingerprints(diag.List{d}, root)[0]; is == was {
			t.Errorf("%s: %s is the same finding", name, is)
		}
	}
}

// TestFingerprintsElsewhere: a finding has the same fingerprint in a checkout in another folder.
func TestFingerprintsElsewhere(t *testing.T) {
	var all []string
	for range 2 {
		d, dir := finding(), t.TempDir()
		d.File = filepath.Join(dir, "envoy", "a.yaml")
		all = append(all, report.Fingerprints(diag.List{d}, rootAt(t, dir))...)
	}
	if all[0] != all[1] {
		t.Error(all)
	}
}

// TestFingerprintsCount: equal findings get numbers, and other findings do not.
func TestFingerprintsCount(t *testing.T) {
	other := finding()
	other.Message = "another"
	all := report.Fingerprints(diag.List{finding(), other, finding(), finding()}, rootAt(t, "."))
	hash, _, _ := strings.Cut(all[0], ":")
	if all[2] != hash+":2" || all[3] != hash+":3" || !strings.HasSuffix(all[1], ":1") || strings.HasPrefix(all[1], hash) {
		t.Error(all)
	}
}

// TestFingerprintsOfSecrets: a fingerprint does not depend on a secret, so that nobody can guess the secret by
// trying.
func TestFingerprintsOfSecrets(t *testing.T) {
	root := rootAt(t, ".")
	var all []string
	for _, secret := range []string{"hunter2", "letmein"} {
		d := finding()
		d.Message, d.Path, d.Sensitive = "bad URL http://me:"+secret+"@host", `metadata["`+secret+`"]`, true
		all = append(all, report.Fingerprints(diag.List{d}, root)...)
	}
	if all[0] != all[1] {
		t.Error("a fingerprint follows from a secret")
	}
}

func TestPath(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"repository/envoy", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"alias": "repository", "repository/envoy/link.yaml": "../../elsewhere/a.yaml"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "repository", "envoy"))
	for _, at := range []string{"..", top + "/alias", top + "/repository"} {
		root := rootAt(t, at)
		for file, want := range map[string]string{
			"a.yaml":                         "envoy/a.yaml",
			"./x/../a.yaml":                  "envoy/a.yaml",
			"..a.yaml":                       "envoy/..a.yaml",
			top + "/repository/envoy/a.yaml": "envoy/a.yaml",
			top + "/alias/gone/a.yaml":       "gone/a.yaml",
			"link.yaml":                      "envoy/link.yaml",
			"..":                             ".",
		} {
			if path, inside := root.Path(file); path != want || !inside {
				t.Errorf("root %s: %s is %s, %v", at, file, path, inside)
			}
		}
		for _, file := range []string{"", diag.StandardInput, "../../elsewhere/a.yaml", top + "/repository-2/a.yaml", "/"} {
			if path, inside := root.Path(file); path != file || inside {
				t.Errorf("root %s: %s is %s, %v", at, file, path, inside)
			}
		}
	}
}
