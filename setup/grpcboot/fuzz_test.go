package grpcboot_test

import (
	"testing"

	"xdspub/setup/grpcboot"
)

// FuzzParse: Parse and Target end for any bootstrap and any target. A bootstrap without errors has no errors after
// it is written again.
func FuzzParse(f *testing.F) {
	for _, s := range sentences {
		f.Add(s.bootstrap, "xds:///a,b(c)")
	}
	f.Add(misspelt, "xds://prod/a")
	f.Fuzz(func(t *testing.T, text, target string) {
		r := grpcboot.Parse("b.json", []byte(text))
		_, _ = r.Config.Target(target)
		_, _ = r.Config.Address(target)
		if r.Diagnostics.HasErrors() {
			return
		}
		again, err := r.Config.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if list := grpcboot.Parse("b.json", again).Diagnostics; list.HasErrors() {
			t.Errorf("%s becomes %s, which has %v", text, again, list)
		}
	})
}
