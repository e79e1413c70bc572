package mutate_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"xdspub/tools/mutate"
)

const quickstart = `[{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "blue", "connect_timeout": "1s", "endpoints": [{"port": 80}, {"port": 81, "weight": 1}]}, {"@type": "a.Route", "name": "r", "enabled": true}]`

// mutants makes n mutants.
func mutants(t *testing.T, seed uint64, n int) (documents, faults []string) {
	t.Helper()
	list := resources(t, []byte(quickstart))
	var corpus mutate.Corpus
	corpus.Learn(list)
	corpus.Learn(resources(t, []byte(`[{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "service": "b", "type": 1}, {"@type": "a.Route", "name": "s"}]`)))
	r := rand.New(rand.NewPCG(seed, 0))
	for range n {
		mutant, fault := corpus.Mutate(r, list)
		text, err := json.Marshal(mutant)
		if err != nil {
			t.Fatal(err)
		}
		documents, faults = append(documents, string(text)), append(faults, fault)
	}
	if got, want := string(response(list)), string(response(resources(t, []byte(quickstart)))); got != want {
		t.Errorf("what is mutated has changed: %s", got)
	}
	return documents, faults
}

func TestMutate(t *testing.T) {
	const n = 3000
	documents, faults := mutants(t, 1, n)
	again, _ := mutants(t, 1, n)
	other, _ := mutants(t, 2, n)
	original, err := json.Marshal(resources(t, []byte(quickstart)))
	if err != nil {
		t.Fatal(err)
	}
	same, distinct := 0, make(map[string]bool)
	for i := range n {
		if documents[i] == string(original) || faults[i] == "" {
			t.Errorf("mutant %d, %q, is what it was", i, faults[i])
		}
		if documents[i] != again[i] {
			t.Fatalf("mutant %d differs with the same seed", i)
		}
		if documents[i] == other[i] {
			same++
		}
		distinct[documents[i]] = true
	}
	if same > n/10 || len(distinct) < n/10 {
		t.Errorf("%d of %d are the same with another seed, %d are distinct", same, n, len(distinct))
	}
	all := strings.Join(faults, "\n")
	for _, kind := range []string{
		`(?m)^\[0\]\.name: dropped$`, `(?m)^\[1\]: doubled$`, `(?m)^\[0\]\.endpoints\[0\]: swapped with \[1\]$`, `(?m)^\[0\]\.name: swapped with connect_timeout$`,
		`(?m)^\[1\]\.name: made (null|7|true|\{\})$`, `(?m)^\[0\]\.connect_timeout: renamed `, `(?m)^\[0\]\.name: made "(bluex|BLUE|\*\.blue|nope|blue )"$`, `(?m)^\[0\]\.connect_timeout: made "0s"$`,
		`(?m)^\[0\]\.endpoints\[0\]\.port: made 65536$`, `(?m)^\[1\]\.enabled: made false$`, `(?m)^\[1\]\.name: made "s"$`, `(?m)^\[0\]: with service "b"$`, `(?m)^\[0\]: with the field [a-z_]+ `,
		`(?m)^\[0\]\.name: moved to service$`, `(?m)^\[0\]\.endpoints\[0\]: with weight 1$`, `(?m)^\[1\]: made \{"@type":"type\.googleapis\.com/envoy.config.cluster.v3.Cluster"`, `(?m)^\[0\]: before it \{"@type":"a.Route"`,
	} {
		if !regexp.MustCompile(kind).MatchString(all) {
			t.Errorf("no fault is like %s", kind)
		}
	}
}

// TestMutateAnything: Mutate accepts its own results, again and again, until nothing is left.
func TestMutateAnything(t *testing.T) {
	var corpus mutate.Corpus
	r := rand.New(rand.NewPCG(3, 0))
	for _, known := range []string{`[]`, quickstart} {
		corpus.Learn(resources(t, []byte(known)))
		for range 20 {
			list, steps := resources(t, []byte(quickstart)), 0
			for fault := "first"; fault != "" && steps < 300; steps++ {
				list, fault = corpus.Mutate(r, list)
			}
			if steps < 300 && len(list) > 0 {
				t.Errorf("nothing can be changed in %s", response(list))
			}
		}
	}
	if list, fault := corpus.Mutate(r, nil); len(list) > 0 || fault != "" {
		t.Errorf("%v: %q", list, fault)
	}
}
