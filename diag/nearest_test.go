package diag_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"xdspub/diag"
)

func TestNearest(t *testing.T) {
	words := diag.NewCandidates([]string{"web", "service-b", "service-a", "metrics", "connect_timeout"})
	for word, want := range map[string]string{
		"webb": "web", "wab": "web", "wbe": "web", "metrcis": "metrics", "metric": "metrics", "service-c": "service-b",
		"conect_timeuot": "connect_timeout", "connect_timeout_": "connect_timeout", "xconnect_timeou": "connect_timeout",
		"web": "", "api": "", "": "", "service": "service-b", "w": "", "conect_tmeuot": "",
	} {
		if got := words.Nearest(word); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestNearestAgrees compares the search with a computation of all distances. Its words have few different letters,
// so many are similar.
func TestNearestAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := func() string {
		word := make([]byte, random.IntN(9))
		for i := range word {
			word[i] = "abc"[random.IntN(3)]
		}
		return string(word)
	}
	for range 300 {
		var list []string
		for range random.IntN(40) {
			list = append(list, letters())
		}
		words := diag.NewCandidates(list)
		for range 20 {
			word := letters()
			want, limit := "", max(1, min(2, len(word)/3))
			for _, candidate := range list {
				if d := distance(word, candidate); candidate != "" && d > 0 && d <= limit {
					want, limit = candidate, d-1
				}
			}
			if got := words.Nearest(word); got != want {
				t.Fatalf("Nearest(%q) of %q = %q, want %q", word, list, got, want)
			}
		}
	}
}

// distance returns the number of edits from a to b. An edit inserts, drops or replaces a letter, or swaps two
// neighbours.
func distance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	x, y := len(a)-1, len(b)-1
	if a[x] == b[y] {
		return distance(a[:x], b[:y])
	}
	d := 1 + min(distance(a[:x], b), distance(a, b[:y]), distance(a[:x], b[:y]))
	if x > 0 && y > 0 && a[x] == b[y-1] && a[x-1] == b[y] {
		d = min(d, 1+distance(a[:x-1], b[:y-1]))
	}
	return d
}

// TestNearestEnds: the search ends soon for words that are made to be similar, and for a huge word. Its answer is
// always the same.
func TestNearestEnds(t *testing.T) {
	var list []string
	for i := range 16 {
		for j := range i {
			for c := range 26 * 26 {
				word := []byte("aaaaaaaaaaaaaaaa")
				word[i], word[j] = byte('a'+c/26), byte('a'+c%26)
				list = append(list, string(word))
			}
		}
	}
	words := diag.NewCandidates(list)
	first := words.Nearest("zzaaaaaaaaaaaaza")
	for range 3 {
		if got := words.Nearest("zzaaaaaaaaaaaaza"); got != first {
			t.Errorf("%q, and then %q", first, got)
		}
	}
	long := strings.Repeat("a", 1<<20)
	if got := diag.NewCandidates([]string{long + "b"}).Nearest(long); got != "" {
		t.Errorf("%d letters", len(got))
	}
}

// BenchmarkNearest searches for as many names as the list has. If the time is linear, ns/unit, the time for one
// name, hardly grows.
func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{1_000, 2_000, 4_000, 8_000, 16_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var list []string
			for i := range n {
				list = append(list, fmt.Sprintf("service-%d", i))
			}
			for b.Loop() {
				words := diag.NewCandidates(list)
				for _, name := range list {
					words.Nearest(name + "-x")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/unit")
		})
	}
}
