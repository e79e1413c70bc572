package diag_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
)

func at(file string, line, column int) diag.Position {
	return diag.Position{File: file, Line: line, Column: column}
}

func TestPosition(t *testing.T) {
	for _, c := range []struct {
		p    diag.Position
		want string
	}{
		{diag.Position{}, ""},
		{at("a", 0, 0), "a"},
		{at("a", 0, 5), "a"},
		{at("a", 3, 0), "a:3"},
		{at("a", 3, 14), "a:3:14"},
	} {
		if got := c.p.String(); got != c.want {
			t.Errorf("%#v is %q, want %q", c.p, got, c.want)
		}
	}
	sorted := []diag.Position{{}, at("a", 0, 0), at("a", 2, 9), at("a", 10, 1), at("a", 10, 2), at("b", 1, 1)}
	for i, p := range sorted {
		for j, q := range sorted {
			if got := p.Compare(q); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v compared with %v: %d", p, q, got)
			}
		}
	}
}

func TestSort(t *testing.T) {
	cluster := func(name string) diag.Resource { return diag.Resource{Type: "cluster", Name: name} }
	want := diag.List{
		{Code: "no-place", Message: "m"},
		{Code: "no-place", Message: "n"},
		{Code: "z", Position: at("a", 0, 0)},
		{Code: "z", Position: at("a", 2, 1)},
		{Code: "z", Position: at("a", 2, 3)},
		{Code: "a", Position: at("a", 2, 3), Severity: diag.Warning},
		{Code: "a", Position: at("a", 10, 1)},
		{Code: "b", Position: at("a", 10, 1)},
		{Code: "b", Position: at("a", 10, 1), Path: "p"},
		{Code: "b", Position: at("a", 10, 1), Path: "p", Message: "m"},
		{Code: "b", Position: at("a", 10, 1), Path: "q", Message: "m"},
		{Code: "b", Position: at("a", 10, 1), Path: "p", Message: "n"},
		// A finding about a YAML anchor that two resources use is kept once, for the first resource.
		{Code: "c", Position: at("a", 10, 1), Message: "m", Resource: cluster("a")},
		{Code: "a", Position: at("b", 1, 1)},
		{Code: "d", Position: at("b", 1, 1), Related: []diag.Related{{Position: at("b", 2, 1)}}},
	}
	doubled := diag.List{
		{Code: "d", Position: at("b", 1, 1), Related: []diag.Related{{Position: at("c", 1, 1)}}}, // the same finding with another related place
		{Code: "a", Position: at("a", 2, 3), Severity: diag.Info},                                // the same finding with a lower severity
		{Code: "c", Position: at("a", 10, 1), Message: "m", Resource: cluster("b")},
		{Code: "c", Position: at("a", 10, 1), Message: "m", Resource: diag.Resource{Type: "listener", Name: "a"}},
		{Code: "a", Position: at("b", 1, 1), Help: "said twice"},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		got := slices.Concat(want, doubled[:3])
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		got = append(got, doubled[3])
		if diff := cmp.Diff(want, got.Sort()); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	if got := diag.List(nil).Sort(); len(got) != 0 {
		t.Errorf("nothing sorted is %v", got)
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		list                   diag.List
		errors, warnings, info int
	}{
		{nil, 0, 0, 0},
		{diag.List{{Severity: diag.Warning}, {Severity: diag.Info}, {Severity: diag.Warning}}, 0, 2, 1},
		{diag.List{{Severity: diag.Warning}, {}}, 1, 1, 0},
	} {
		if e, w, i := c.list.Count(diag.Error), c.list.Count(diag.Warning), c.list.Count(diag.Info); e != c.errors || w != c.warnings || i != c.info {
			t.Errorf("%v: %d errors, %d warnings, %d remarks", c.list, e, w, i)
		}
		if got := c.list.HasErrors(); got != (c.errors > 0) {
			t.Errorf("%v: HasErrors %v", c.list, got)
		}
	}
}
