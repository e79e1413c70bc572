package grpcboot_test

import (
	"testing"

	"xdspub/setup/grpcboot"
)

// FuzzParse: whatever a bootstrap and a target hold, both are read to their end; and what has no error
// has none once it is written.
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
