package validate

import "testing"

func TestNearest(t *testing.T) {
	candidates := []string{"web", "service-b", "service-a", "metrics"}
	for name, want := range map[string]string{
		"webb": "web", "wab": "web", "metrcis": "metrics", "metric": "metrics", "service-c": "service-b",
		"web": "", "api": "", "": "", "service": "service-b", "w": "",
	} {
		if got := nearest(name, candidates); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
