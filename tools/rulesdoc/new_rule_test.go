package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNewRule makes rules in a copy of the module. Each gets its place in the list, and the test of rules passes
// with a new rule.
func TestNewRule(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package again")
	}
	module := filepath.Join(t.TempDir(), "module")
	copyModule(t, module)
	for _, c := range []struct{ family, code, name, before string }{
		{"tls", "aaa-first", "aaaFirst", "badCertificate"},
		{"tls", "bad-certificata", "badCertificata", "badCertificate"},
		{"tls", "bad-certificate-2", "badCertificate2", "badPrivateKey"},
		{"syntax", "bad-ca", "badCa", "badCELExpression"},
		{"tls", "zzz-last", "zzzLast", ""},
	} {
		if output, status := command(t, module, "scripts/new-rule", c.code, c.family); status != 0 {
			t.Fatalf("%s: exit status %d\n%s", c.code, status, output)
		}
		rules, err := os.ReadFile(filepath.Join(module, "validate/rules", c.family, "rules.go"))
		if err != nil {
			t.Fatal(err)
		}
		want := "\t" + c.name + ",\n\t" + c.before + ",\n"
		if c.before == "" {
			want = "\t" + c.name + ",\n)\n"
		}
		if !strings.Contains(string(rules), want) {
			t.Errorf("%s does not stand before %s:\n%s", c.name, c.before, rules)
		}
	}
	for _, bad := range [][]string{{}, {"one", "tls"}, {"Two-Words", "tls"}, {"aaa-first", "tls"}, {"aaa-first", "route"}, {"of-none"}, {"of-none", "testdata"}} {
		output, status := command(t, module, "scripts/new-rule", bad...)
		if status == 0 {
			t.Errorf("%q is taken\n%s", bad, output)
		}
		if status == 2 && !strings.Contains(output, "\n  tls: TLS contexts, ") {
			t.Errorf("%q: the families are not shown\n%s", bad, output)
		}
	}

	// All new rules have the same example, so that only one new rule can pass the test of rules.
	alone := filepath.Join(t.TempDir(), "alone")
	copyModule(t, alone)
	if output, status := command(t, alone, "scripts/new-rule", "stat-name-repeated", "cluster"); status != 0 {
		t.Fatalf("exit status %d\n%s", status, output)
	}
	if output, status := command(t, alone, "go", "test", "-count", "1", "-run", "^TestRules|^TestFamilies$", "./validate/rules"); status != 0 {
		t.Errorf("exit status %d\n%s", status, output)
	}
	if output, status := command(t, alone, "gofmt", "-l", "validate"); status != 0 || output != "" {
		t.Errorf("not as gofmt would: %s", output)
	}
}

// copyModule copies the parts of the module that tests of rules need.
func copyModule(t *testing.T, to string) {
	t.Helper()
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if name[0] == '.' || slices.Contains([]string{"bin", "docs", "e2e", "examples"}, name) {
			continue
		}
		from := filepath.Join("../..", name)
		err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			target := filepath.Join(to, strings.TrimPrefix(path, "../.."))
			return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, data, info.Mode().Perm()))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func command(t *testing.T, dir, name string, arguments ...string) (output string, status int) {
	t.Helper()
	if strings.HasPrefix(name, "scripts/") {
		name = filepath.Join(dir, name)
	}
	cmd := exec.Command(name, arguments...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if failed {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}
