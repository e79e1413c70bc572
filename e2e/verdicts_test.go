package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/source/follow"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// TestVerdicts compares each row of testdata/verdicts.yaml with the findings of the rule of the row, and a sample of
// the rows with Envoy's reaction.
func TestVerdicts(t *testing.T) {
	envoytest.Binary(t)
	table, verdicts := readVerdicts(t)
	tryRows(t, table, verdicts, portion.Every(6, 6))
}

// readVerdicts returns the rows by rule, and the facts whose slots they use. Finds of a row is the severity of the
// finding of its rule, if the rule has one.
func readVerdicts(t *testing.T) (facts, map[string][]fact) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "verdicts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err = certs.Expand(text)
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Parts    any
		Slots    map[string]map[string]any
		Verdicts map[string][]fact
	}
	full := strings.ReplaceAll(string(text), `"@type": `, `"@type": type.googleapis.com/`)
	if err := yaml.UnmarshalStrict([]byte(full), &table); err != nil {
		t.Fatal(err)
	}
	for code, rows := range table.Verdicts {
		for i, row := range rows {
			if row.Finds != "" {
				rows[i].XDSPub = map[string]string{row.Finds: code}
			}
		}
	}
	facts := readFacts(t)
	maps.Copy(facts.Slots, table.Slots)
	return facts, table.Verdicts
}

// TestErrorsAreEnvoys: for each rule with errors, Envoy has refused a configuration: a row of
// testdata/verdicts.yaml or facts.yaml, or a case of tools/agreement without another fault. For rules that refuse
// configurations that Envoy accepts, testdata/stricter-than-envoy has the reason.
func TestErrorsAreEnvoys(t *testing.T) {
	shown := refusedByEnvoy(t)
	stricter := readStricter(t)
	codes := slices.Clone(follow.Codes)
	for _, r := range rules.All {
		if slices.Contains(r.Profiles, validate.GRPC) && !slices.Contains(r.Profiles, validate.EnvoyFile) {
			continue // serve.TestGRPCVerdicts tests these rules
		}
		if r.OfVariants {
			continue // an Envoy gets only one variant, and can't refuse several
		}
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity})
	}
	for _, c := range codes {
		switch reason := stricter[c.Name]; {
		case c.Severity != diag.Error:
			if reason != "" {
				t.Errorf("%s stands in stricter-than-envoy, and is no error", c.Name)
			}
		case shown[c.Name] && reason != "":
			t.Errorf("%s stands in stricter-than-envoy, and Envoy refuses what it finds", c.Name)
		case !shown[c.Name] && reason == "":
			t.Errorf("%s is an error, and no run of Envoy shows that it refuses what the rule finds", c.Name)
		}
		delete(stricter, c.Name)
	}
	for code := range stricter {
		t.Errorf("%s stands in stricter-than-envoy, and is no rule", code)
	}
}

// TestRefusedSince: each line of refused-since.txt and each constraint of since.txt in envoy/envoyapi has a row
// with the same release, and each row with since has a line.
func TestRefusedSince(t *testing.T) {
	listed := make(map[string]bool) // release and code
	for _, name := range []string{"refused-since.txt", "since.txt"} {
		text, err := os.ReadFile(filepath.Join("..", "envoy", "envoyapi", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			switch words := strings.Fields(line); {
			case words[0] == "#":
			case name == "refused-since.txt":
				listed[words[0]+" "+diag.CodeOf(words[1])] = true
			case words[1] == "constraint":
				listed[words[0]+" field-constraint"] = true
			}
		}
	}
	tried := make(map[string]bool)
	table, verdicts := readVerdicts(t)
	for _, rows := range []map[string][]fact{table.Facts, verdicts} {
		for _, list := range rows {
			for _, row := range list {
				if row.Since != "" {
					tried[row.Since+" "+row.XDSPub["error"]] = true
				}
			}
		}
	}
	if !maps.Equal(listed, tried) {
		t.Errorf("refused-since.txt has %v, and the tables %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(tried)))
	}
}

// refusedByEnvoy returns the codes of errors on configurations that Envoy has refused.
func refusedByEnvoy(t *testing.T) map[string]bool {
	t.Helper()
	shown := make(map[string]bool)
	table, verdicts := readVerdicts(t)
	for _, rows := range []map[string][]fact{table.Facts, verdicts} {
		for _, list := range rows {
			for _, row := range list {
				if row.Envoy != "takes" {
					shown[row.XDSPub["error"]] = true
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "tools", "agreement", "testdata", "findings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	refused := regexp.MustCompile(`^\S+: (?:rejected|load-failure|crash|accepted-field-dropped)`)
	erring := regexp.MustCompile(`(?m): error: .* \[([a-z0-9-]+)(?:/[a-z0-9-]+)?\]$`)
	for _, side := range strings.Split(string(text), "== ")[1:] {
		codes := make(map[string]bool)
		for _, m := range erring.FindAllStringSubmatch(side, -1) {
			codes[m[1]] = true
		}
		if refused.MatchString(side) && len(codes) == 1 {
			maps.Copy(shown, codes)
		}
	}
	return shown
}

// readStricter returns the reasons of rules that refuse configurations that Envoy accepts.
func readStricter(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "stricter-than-envoy"))
	if err != nil {
		t.Fatal(err)
	}
	stricter := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		code, reason, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("stricter-than-envoy: %q is no code and reason", line)
		}
		stricter[code] = reason
	}
	return stricter
}
