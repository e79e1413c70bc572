package delivery

import (
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDist: scripts/dist makes a static program of this commit, with the right list of modules and licences.
func TestDist(t *testing.T) {
	t.Parallel()
	program := the(t, built)
	if linked, err := elf.Open(program); err == nil { // on Linux and FreeBSD
		defer linked.Close()
		if libraries, err := linked.ImportedLibraries(); len(libraries) > 0 {
			t.Errorf("the program needs %v (%v)", libraries, err)
		}
	}
	version, err := exec.Command(program, "--version").Output()
	if !regexp.MustCompile(`^xdspub v0\.0\.0-\d{14}-[0-9a-f]{12}, `).Match(version) {
		t.Errorf("--version says %q (%v), not which commit it is", version, err)
	}
	if strings.Contains(written(t, program), tmp) {
		t.Error("the program has the folder that it was built in")
	}
	modules := linkedModules(t, program)
	if diff := cmp.Diff(modules, componentsOf(t, program+".cdx.json")); diff != "" {
		t.Errorf("the SBOM does not have the modules of the program (-program +SBOM):\n%s", diff)
	}
	licenses := written(t, filepath.Join(filepath.Dir(program), "LICENSES"))
	for _, m := range modules {
		name, _, _ := strings.Cut(m, "@")
		_, text, _ := strings.Cut(licenses, "\n== "+name+" ==\n")
		text, _, _ = strings.Cut(text, "\n== ")
		if !strings.Contains(strings.ToLower(text), "copyright") && name != "std" {
			t.Errorf("LICENSES has no licence of %s", name)
		}
	}
}

// TestDistAgain: another clone in another folder gives the same bytes.
func TestDistAgain(t *testing.T) {
	t.Parallel()
	first := filepath.Dir(the(t, built))
	other := clone(t)
	if _, err := shell(other, nil, `scripts/dist "$0"`, host); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, dir := range []string{first, filepath.Join(other, "dist")} {
		sums := written(t, filepath.Join(dir, "SHA256SUMS"))
		if want := sumsOf(t, dir); sums != want {
			t.Errorf("SHA256SUMS has\n%s\nwant\n%s", sums, want)
		}
		all = append(all, sums)
	}
	if all[0] != all[1] {
		t.Errorf("two clones give\n%s\nand\n%s", all[0], all[1])
	}
}

// sumsOf returns the right content of SHA256SUMS for the other files of a folder.
func sumsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		if f.Name() != "SHA256SUMS" {
			fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256([]byte(written(t, filepath.Join(dir, f.Name())))), f.Name())
		}
	}
	return b.String()
}

// linkedModules returns the modules of a program, with the standard library, sorted.
func linkedModules(t *testing.T, program string) []string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{"std@" + info.GoVersion}
	for _, m := range info.Deps {
		list = append(list, m.Path+"@"+m.Version)
	}
	slices.Sort(list)
	return list
}

// componentsOf returns the modules of an SBOM, sorted.
func componentsOf(t *testing.T, name string) (list []string) {
	t.Helper()
	var bom struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal([]byte(written(t, name)), &bom); err != nil || bom.BOMFormat != "CycloneDX" {
		t.Fatalf("%s is no SBOM of CycloneDX: %v", name, err)
	}
	for _, c := range bom.Components {
		list = append(list, c.Name+"@"+c.Version)
		if !strings.HasPrefix(c.PURL, "pkg:golang/") {
			t.Errorf("%s has the package URL %q", c.Name, c.PURL)
		}
	}
	slices.Sort(list)
	return list
}
