package bootstrap_test

import (
	"testing"

	"xdspub/setup/bootstrap"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
)

// TestMergeEnvoy: Envoy accepts a merged bootstrap if it accepts the Base.
func TestMergeEnvoy(t *testing.T) {
	envoytest.Binary(t)
	n := 0
	for name, text := range bootstraps(t) {
		base, _ := bootstrap.Read(load.Input{Name: name, Format: "yaml", Data: text})
		if base != nil && base.Message.GetDynamicResources() != nil {
			text = without(t, text, "dynamic_resources")
			base, _ = bootstrap.Read(load.Input{Name: name, Format: "yaml", Data: text})
		}
		if base == nil {
			continue // the Base is no bootstrap, or is empty
		}
		o := options()
		agree(&o, base.Message)
		merged, conflicts, err := base.Merge(o)
		if err != nil || len(conflicts) > 0 {
			continue // TestMergeKeepsAll reports it
		}
		if ok, _ := envoytest.Validate(t, text); !ok {
			continue
		}
		n++
		if ok, output := envoytest.Validate(t, merged); !ok {
			t.Errorf("%s: Envoy does not take\n%s\n%s", name, merged, output)
		}
	}
	if n < 5 {
		t.Errorf("Envoy took %d bootstraps", n)
	}
}
