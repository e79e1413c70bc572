package sample

import (
	"net/netip"
	"regexp"
	"testing"
)

// TestAddresses: the addresses of many clusters are valid and unique.
func TestAddresses(t *testing.T) {
	const clusters = 100_000
	address := regexp.MustCompile(`10\.[0-9]+\.[0-9]+\.[0-9]+`)
	seen := make(map[string]bool)
	for i := range clusters {
		for _, text := range address.FindAllString(Topology{Clusters: clusters}.Endpoints(i, 0), -1) {
			if _, err := netip.ParseAddr(text); err != nil || seen[text] {
				t.Fatalf("cluster %d: %s, %v, seen before: %t", i, text, err, seen[text])
			}
			seen[text] = true
		}
	}
	if len(seen) != 3*clusters {
		t.Errorf("%d addresses", len(seen))
	}
	if text := address.FindString(Part(clusters-1, 1)); text != "10.1.134.159" {
		t.Errorf("the last of many clusters is at %s", text)
	}
}
