package check_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// keysInUse are those that the trees of this test go by, each with these values.
var keysInUse = []string{"env", "region", "version"}

// randomTree is a source tree of clusters and of routes that refer to them, with variants that are
// for different clients each.
func randomTree(r *rand.Rand) map[string]string {
	files := make(map[string]string)
	clusters := []string{"a", "b", "c", "d"}
	resource := func(name string, of func(variant int) string) {
		list := partition(r)
		if r.IntN(4) == 0 {
			list = []string{""}
		}
		for i, constraints := range list {
			if constraints != "" && r.IntN(3) == 0 {
				continue // clients without a variant
			}
			file := fmt.Sprintf("%s-%d.yaml", name, i)
			files[file] = indented("", of(i))
			if constraints != "" {
				files[file] = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nresource_name: {name: %s, dynamic_parameter_constraints: %s}\nresource:\n%s", name, constraints, indented("  ", of(i)))
			}
		}
	}
	for _, name := range clusters[:3] {
		resource(name, func(int) string {
			return "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: " + name + "\ntype: STATIC\n"
		})
	}
	for i := range 3 {
		name := fmt.Sprintf("routes%d", i)
		resource(name, func(int) string {
			text := "\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\nname: " + name + "\nvirtual_hosts:\n"
			for h := range r.IntN(3) {
				text += fmt.Sprintf("- {name: h%d, domains: [h%d], routes: [{match: {prefix: /}, route: {cluster: %s}}]}\n", h, h, clusters[r.IntN(len(clusters))])
			}
			return text
		})
	}
	return files
}

// partition returns constraints by which each client has one of the variants.
func partition(r *rand.Rand) []string {
	of := func(key, value string) string { return fmt.Sprintf("{constraint: {key: %s, value: %s}}", key, value) }
	key := keysInUse[r.IntN(len(keysInUse))]
	one := of(key, "one")
	not := "{not_constraints: " + one + "}"
	if r.IntN(2) == 0 {
		return []string{one, not}
	}
	other := of(keysInUse[r.IntN(len(keysInUse))], "two")
	and := func(a, b string) string { return "{and_constraints: {constraints: [" + a + ", " + b + "]}}" }
	return []string{and(one, other), and(one, "{not_constraints: "+other+"}"), and(not, "{or_constraints: {constraints: ["+other+", {not_constraints: "+other+"}]}}")}
}

func indented(by, text string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

// everyClient are all clients that constraints over the keys can tell apart.
func everyClient() (list []params.Parameters) {
	for n := range 4 * 4 * 4 {
		p := make(params.Parameters)
		for i, key := range keysInUse {
			if v := n >> (2 * i) & 3; v < 3 {
				p[key] = []string{"one", "two", "other"}[v]
			}
		}
		list = append(list, p)
	}
	return list
}

// TestEachClient: what is found for any client is what is found for one of all that there can be,
// judged alone. The same tree is judged again after each edit, as a watch does.
func TestEachClient(t *testing.T) {
	unresolved := 0
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		disable := []string{"variant-gap", "unused-resource"}
		again := check.New(check.Options{Path: dir, Rules: check.Rules{Disable: disable}, AllowEmpty: true})
		files := make(map[string]string)
		for range 3 {
			next := randomTree(r)
			for name := range files {
				if next[name] == "" {
					if err := os.Remove(filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for name, text := range next {
				if files[name] != text {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			files = next
			want := make(map[string]bool)
			for _, p := range everyClient() {
				for id := range found(t, check.New(check.Options{Path: dir, AllowEmpty: true, Rules: check.Rules{Disable: disable, Client: &variants.Client{Parameters: p}}})) {
					want[id] = true
				}
			}
			cold := found(t, check.New(check.Options{Path: dir, AllowEmpty: true, Rules: check.Rules{Disable: disable}}))
			if !maps.Equal(cold, want) {
				t.Fatalf("seed %d: of any client\n%s\nof each\n%s\nin %v", seed, lines(cold), lines(want), files)
			}
			unresolved += strings.Count(lines(cold), "unresolved-reference")
			if watched := found(t, again); !maps.Equal(watched, cold) {
				t.Fatalf("seed %d: again\n%s\ncold\n%s", seed, lines(watched), lines(cold))
			}
		}
	}
	if unresolved < 20 {
		t.Errorf("the trees have %d references that lead nowhere: too few to show anything", unresolved)
	}
}

// found returns the findings of a check, without what is said of clients.
func found(t *testing.T, tree *check.Tree) map[string]bool {
	t.Helper()
	result, err := tree.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, d := range result.Diagnostics {
		message, _, _ := strings.Cut(d.Message, "; so it is for ")
		all[fmt.Sprintf("%v %s %s", d.Position, d.Code, message)] = d.Severity != diag.Info
	}
	return all
}

func lines(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), "\n")
}

// TestTooManyClients: where constraints combine more than can be told apart, that is said, and the
// check ends.
func TestTooManyClients(t *testing.T) {
	dir := t.TempDir()
	write := func(name, constraints string) {
		text := fmt.Sprintf("\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nresource_name: {name: %s, dynamic_parameter_constraints: %s}\nresource: {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %[1]s, type: STATIC}\n", name, constraints)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostClients + 1 {
		write(fmt.Sprintf("c%d", i), fmt.Sprintf("{constraint: {key: env, value: v%d}}", i))
	}
	is := found(t, check.New(check.Options{Path: dir, Rules: check.Rules{Disable: []string{"variant-gap", "unused-resource"}}}))
	if !strings.Contains(lines(is), "the variants were judged for 1000 clients, not for all: they tell more than 1000 clients apart") {
		t.Error(lines(is))
	}

	var exist []string
	for i := range 40 {
		exist = append(exist, fmt.Sprintf("{and_constraints: {constraints: [{constraint: {key: a%02d, exists: {}}}, {constraint: {key: z%02[1]d, exists: {}}}]}}", i))
	}
	write("wild", "{or_constraints: {constraints: ["+strings.Join(exist, ", ")+"]}}")
	is = found(t, check.New(check.Options{Path: dir, Rules: check.Rules{Disable: []string{"variant-gap", "unused-resource"}}}))
	if !strings.Contains(lines(is), "variant-overlap nobody can say which clients the variants of cluster \"wild\" are for") {
		t.Error(lines(is))
	}
}

// mostClients is how many are judged.
const mostClients = 1_000
