package bind_test

import (
	"slices"
	"strings"
	"testing"

	"xdspub/xds"
	"xdspub/xds/bind"
)

// TestRestore: inlined resources are restored from the source tree, unless their content differs.
func TestRestore(t *testing.T) {
	s := parse(t, tree)
	for _, inline := range []bind.Inline{
		{}, {Endpoints: true}, {ScopeRoutes: true, Groups: true}, {Endpoints: true, Routes: true, ScopeRoutes: true, Groups: true},
	} {
		var b bind.Binder
		files := b.Bind(t.Context(), s, inlining{inline})
		if is := bind.Restore(t.Context(), files, s); !slices.Equal(is.All(), s.All()) {
			t.Errorf("%+v: restored are %v", inline, is.All())
		}
		if is := bind.Restore(t.Context(), files, xds.NewSnapshot(nil)); !slices.Equal(is.All(), files.All()) {
			t.Errorf("%+v: without a source tree, restored are %v", inline, is.All())
		}
	}
	var b bind.Binder
	files := b.Bind(t.Context(), s, inlining{bind.Inline{Endpoints: true, ScopeRoutes: true, Groups: true}})
	edited := parse(t, strings.NewReplacer("cluster_name: web", "cluster_name: web, policy: {overprovisioning_factor: 150}", "domains: [h]", "domains: [i]").Replace(tree))
	is := bind.Restore(t.Context(), files, edited)
	for _, r := range is.All() {
		from := edited
		if slices.Contains([]string{"web", "r", "s"}, r.Name) { // their inlined resources differ
			from = files
		}
		if r != from.Lookup(r.Type, r.Name) {
			t.Errorf("after an edit, %s %q is another one", r.Type, r.Name)
		}
	}
	if is.Len() != files.Len() {
		t.Errorf("after an edit, restored are %v", is.All())
	}
}
