package names

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

func TestMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 1000 {
		want, change := make(map[string]bool), make(map[string]bool)
		for range random.IntN(20) {
			want[strconv.Itoa(random.IntN(30))] = true
		}
		list := slices.Sorted(maps.Keys(want))
		before := slices.Clone(list)
		for range random.IntN(10) {
			change[strconv.Itoa(random.IntN(30))] = random.IntN(2) == 0
		}
		maps.Copy(want, change)
		maps.DeleteFunc(want, func(_ string, in bool) bool { return !in })
		if got := Merge(list, change); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%v after %v: %v", before, change, got)
		}
		if !slices.Equal(list, before) {
			t.Fatal("the list is another one")
		}
	}
}

func TestCounts(t *testing.T) {
	c := make(Counts)
	c.Add([]string{"a", "b", "a"}, 1)
	c.Add([]string{"a", "b"}, -1)
	if want := (Counts{"a": 1}); !maps.Equal(c, want) {
		t.Errorf("%v, want %v", c, want)
	}
}
