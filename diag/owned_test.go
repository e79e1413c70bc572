package diag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
)

func TestOwned(t *testing.T) {
	shop, cart := diag.Resource{Name: "shop"}, diag.Resource{Name: "cart"}
	found := func(message string, of diag.Resource) diag.Diagnostic {
		return diag.Diagnostic{Code: "c", Message: message, Resource: of}
	}
	var o diag.Owned
	o.Add(diag.List{found("one", shop), found("two", shop), found("one", shop)})
	o.Add(nil)
	o.Add(diag.List{found("three", shop), found("one", cart), found("one", shop)})
	want := []diag.OwnedBy{
		{Diagnostic: found("one", shop), Owners: []int{0, 2}},
		{Diagnostic: found("two", shop), Owners: []int{0}},
		{Diagnostic: found("three", shop), Owners: []int{2}},
		{Diagnostic: found("one", cart), Owners: []int{2}},
	}
	if diff := cmp.Diff(want, o.List()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithout(t *testing.T) {
	one, two := diag.Diagnostic{Message: "one"}, diag.Diagnostic{Message: "two"}
	all := diag.List{one, two, one}
	if diff := cmp.Diff(diag.List{two}, all.Without(diag.List{one})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(diag.List{one, two, one}, all); diff != "" {
		t.Errorf("the list was changed (-want +got):\n%s", diff)
	}
}
