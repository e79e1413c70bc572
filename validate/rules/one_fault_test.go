package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"xdspub/diag"
	"xdspub/tools/certs"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// enumName matches a text in YAML that may be the name of an enum value.
var enumName = regexp.MustCompile(`: ([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)\b`)

// TestOneFault misspells every fourth enum value in the good examples of all rules. The misspelled value must be
// the only error: no other error may follow from the default value that Envoy reads instead.
func TestOneFault(t *testing.T) {
	met, tried := 0, 0
	for _, rule := range rules.All {
		if rule.OfVariants {
			continue
		}
		archive, dir := write(t, rule.Code, t.TempDir())
		trees, _ := examples(t, archive)
		for _, name := range trees["good"] {
			tree := filepath.Join(dir, name)
			errors := func() diag.List {
				loaded, snapshot, options := open(t, tree, validate.Options{Now: certs.Now, Profiles: rule.Profiles[:min(1, len(rule.Profiles))], BootstrapFacts: known(t, filepath.Join(dir, "bootstrap.yaml"))})
				all := append(loaded, validate.Run(t.Context(), snapshot, rules.All, options)...)
				return slices.DeleteFunc(all, func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
			}
			paths, err := filepath.Glob(filepath.Join(tree, "*.yaml"))
			if err != nil || len(errors()) > 0 {
				continue
			}
			for _, path := range paths {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range enumName.FindAllSubmatchIndex(text, -1) {
					if met++; met%4 != 0 {
						continue
					}
					end := at[3]
					misspelled := slices.Concat(text[:end], text[end-1:]) // double the last letter
					if err := os.WriteFile(path, misspelled, 0o600); err != nil {
						t.Fatal(err)
					}
					if found := errors(); len(found) > 0 && found[0].Code == "unknown-enum-value" {
						if tried++; len(found) > 1 {
							t.Errorf("%s: of %s are found %v", rule.Code, text[at[2]:end], found)
						}
					}
				}
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d values were misspelled: the test says nothing", tried)
	}
}
