package envoyapi

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// TestFolders: New can read the folder of each version, and reads each file of it.
func TestFolders(t *testing.T) {
	for _, v := range []*Version{Latest} {
		folder, err := fs.Sub(folders, "v"+v.Name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := fs.Glob(folder, "*")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		asked := asking{folder, make(map[string]bool)}
		if _, err := read(asked, Latest.release, Latest.release); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		for _, file := range files {
			if !asked.files[file] {
				t.Errorf("%s: nothing reads %s", v.Name, file)
			}
		}
	}
}

// asking is a folder that records which of its files are read.
type asking struct {
	fs.FS
	files map[string]bool
}

func (a asking) Open(name string) (fs.File, error) {
	a.files[name] = true
	return a.FS.Open(name)
}

// TestMalformed: a malformed line is an error with the place of the line.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"# a remark\nenvoy.config.accesslog.v3.AccessLog.typed_config": "points.txt:2",
		"envoy.config.accesslog.v3.AccessLog.typed_config c nude":      `unknown word "nude"`,
	} {
		r := reader{folder: fstest.MapFS{"points.txt": {Data: []byte(text)}}}
		if r.extensionPoints("points.txt"); r.err == nil || !strings.Contains(r.err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, r.err, want)
		}
	}
	if _, err := read(fstest.MapFS{}, Latest.release, Latest.release); err == nil {
		t.Error("an empty folder is read")
	}
}
