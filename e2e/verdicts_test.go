package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/internal/certs"
	"xdspub/internal/envoytest"
)

// TestVerdicts shows what Envoy does with each row of testdata/verdicts.yaml, and that
// the rule which the row stands under says so.
func TestVerdicts(t *testing.T) {
	envoytest.Binary(t)
	table, verdicts := readVerdicts(t)
	for _, code := range slices.Sorted(maps.Keys(verdicts)) {
		for i, row := range verdicts[code] {
			t.Run(fmt.Sprintf("%s/%d", code, i), func(t *testing.T) {
				t.Parallel()
				trial := newFactTrial(t, table, row)
				trial.validate(t)
				trial.run(t)
			})
		}
	}
}

// readVerdicts reads the rows by rule, and the facts whose slots they use. A row says
// error or warning of its rule, where that finds anything.
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
