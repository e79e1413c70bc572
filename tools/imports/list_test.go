// Package imports tests which package imports which. docs/architecture.md has the law of each folder of the root.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// module is the path of this module.
const module = "xdspub/"

// pkg is a package of this module, as go list prints it.
type pkg struct {
	Dir          string
	Name         string
	ImportPath   string
	Imports      []string
	Deps         []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// name returns the import path of a package without the module.
func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// listed returns all packages of this module.
func listed(t *testing.T) (list []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=Dir,Name,ImportPath,Imports,Deps,GoFiles,TestGoFiles,XTestGoFiles", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// folderOf returns the folder of the root in which a package is. ok is false for a package of another module.
func folderOf(path string) (folder string, ok bool) {
	below, ok := strings.CutPrefix(path, module)
	folder, _, _ = strings.Cut(below, "/")
	return folder, ok
}

// isProduct reports whether a package is a part of the program.
func isProduct(p pkg) bool {
	folder, _ := folderOf(p.ImportPath)
	return folder != "tools" && folder != "examples" && folder != "e2e"
}

// isFamily reports whether a package has the rules of one family.
func isFamily(name string) bool { return strings.HasPrefix(name, "validate/rules/") }
