package diag_test

import (
	"fmt"
	"testing"

	"xdspub/diag"
)

func TestNearest(t *testing.T) {
	words := diag.NewWords([]string{"web", "service-b", "service-a", "metrics", "connect_timeout"})
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

func BenchmarkNearest(b *testing.B) {
	var list []string
	for i := range 10_000 {
		list = append(list, fmt.Sprintf("service-%05d", i))
	}
	words := diag.NewWords(list)
	for b.Loop() {
		words.Nearest("service-12x45")
	}
}
