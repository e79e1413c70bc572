package rules_test

import (
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/certs"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// TestWordsForGRPC judges the examples of all rules for gRPC clients alone. No finding mentions Envoy.
func TestWordsForGRPC(t *testing.T) {
	if testing.Short() {
		t.Skip("reads hundreds of trees, in one goroutine: nothing for the race detector")
	}
	for _, rule := range rules.All {
		archive, dir := write(t, rule.Code, t.TempDir())
		trees, _ := examples(t, archive)
		for _, names := range trees {
			for _, name := range names {
				tree := filepath.Join(dir, name)
				if exists(filepath.Join(tree, "boot.yaml")) {
					continue // a bootstrap of Envoy
				}
				_, snapshot, options := open(t, tree, validate.Options{Now: certs.Now, Profiles: []validate.Profile{validate.GRPC}, Variants: rule.OfVariants})
				for _, d := range validate.Run(t.Context(), snapshot, rules.All, options) {
					if strings.Contains(d.Message+d.Help, "Envoy") {
						t.Errorf("%s/%s: %s: %s; help: %s [%s]", rule.Code, name, d.Resource.Name, d.Message, d.Help, d.Code)
					}
				}
			}
		}
	}
}
