package check_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// everyClient returns a client for each combination of the keys in keysInUse: each key is absent or has the value
// one, two or other.
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

// aFinding identifies a finding of several clients: text has its place, code and message, file is the file of the
// variant that it is about.
type aFinding struct{ text, file string }

// enumerated has the findings of each client. Each client was judged alone.
type enumerated struct {
	tree    *variants.Tree
	clients []params.Parameters
	exist   []bool                             // whether a client certainly exists
	found   map[aFinding]map[int]diag.Severity // for each finding, its severity by the index of the client
}

// enumerate judges a tree for each possible client.
func enumerate(t *testing.T, tree *variants.Tree, o validate.Options) *enumerated {
	e := &enumerated{tree: tree, clients: everyClient(), found: make(map[aFinding]map[int]diag.Severity)}
	judged := make(map[string]diag.List)
	for i, p := range e.clients {
		e.exist = append(e.exist, e.isKnown(p))
		tells := tree.Tells(p)
		list, again := judged[tells]
		if !again {
			list = validate.Run(t.Context(), tree.For(variants.Client{Parameters: p}).Snapshot, rules.All, o)
			judged[tells] = list
		}
		for _, d := range list {
			f := aFinding{textOf(d, d.Message), d.File}
			if e.found[f] == nil {
				e.found[f] = make(map[int]diag.Severity)
			}
			if is, twice := e.found[f][i]; !twice || d.Severity < is {
				e.found[f][i] = d.Severity
			}
		}
	}
	return e
}

func textOf(d diag.Diagnostic, message string) string {
	return fmt.Sprintf("%v %s %s", d.Position, d.Code, message)
}

// valueInUse matches a key and its value in a message.
var valueInUse = regexp.MustCompile(`(\w+)=(\w+)`)

// isKnown reports whether a client certainly exists: it gets a variant of each resource.
func (e *enumerated) isKnown(p params.Parameters) bool {
	for _, k := range e.tree.Keys() {
		if !slices.ContainsFunc(e.tree.Variants(k), func(r *xds.Resource) bool { return r.For.Matches(p) }) {
			return false
		}
	}
	return true
}

// severities returns the severity that each finding must have. An error must be a warning if some client with the
// resource does not have the error, unless a client that certainly exists has it. others has the findings that not
// all clients with the resource have.
func (e *enumerated) severities() (want map[string]diag.Severity, others map[string]bool) {
	of := make(map[string]*xds.Resource)
	for _, r := range e.tree.All().All() {
		of[r.Diagnostic("", "", "").File] = r
	}
	want, others = make(map[string]diag.Severity), make(map[string]bool)
	for f, has := range e.found {
		var known, withoutError, without, anError bool
		worst := diag.Info
		for i, p := range e.clients {
			severity, hasIt := has[i]
			if hasIt {
				worst = min(worst, severity)
			}
			isError := hasIt && severity == diag.Error
			gets := of[f.file].For.Matches(p)
			anError, known = anError || isError, known || isError && e.exist[i]
			withoutError, without = withoutError || gets && !isError, without || gets && !hasIt
		}
		switch {
		case anError && withoutError && !known:
			worst = diag.Warning
		case anError:
			without = withoutError
		}
		want[f.text], others[f.text] = worst, without
	}
	return want, others
}

// compare compares the findings of a check for all clients with the findings of each client.
func (e *enumerated) compare(t *testing.T, list diag.List) {
	t.Helper()
	want, others := e.severities()
	got := make(map[string]diag.Severity)
	for _, d := range list {
		message, who, some := strings.Cut(d.Message, "; this concerns a client with ")
		text := textOf(d, message)
		got[text] = d.Severity
		if some != others[text] {
			t.Errorf("%s\nsays that some clients have it not: %v, want %v", text, some, others[text])
		}
		if !some {
			continue
		}
		client := make(params.Parameters)
		for _, m := range valueInUse.FindAllStringSubmatch(who, -1) {
			client[m[1]] = m[2]
		}
		i := slices.IndexFunc(e.clients, func(p params.Parameters) bool { return maps.Equal(p, client) })
		if severity, has := e.found[aFinding{text, d.File}][i]; i < 0 || !has || severity > d.Severity {
			t.Errorf("%s\nis said to concern a client with %s, and does not", text, who)
		}
	}
	if !maps.Equal(got, want) {
		for text, severity := range want {
			if is, has := got[text]; !has || is != severity {
				t.Errorf("found %v (%v): %s, which is %v", has, is, text, severity)
			}
		}
		for text := range got {
			if _, has := want[text]; !has {
				t.Errorf("no client has %s", text)
			}
		}
	}
}

// TestEachClient checks random trees. The findings for all clients, and their severities, must follow from the
// findings of each client alone. After each edit, a check that has judged the tree before must find the same as a
// new one.
//
// The test uses the same trees each time. With XDSPUB_SOAK, such as 10m, it tries other trees for that time
// (scripts/soak). XDSPUB_SOAK_SEED repeats one tree.
func TestEachClient(t *testing.T) {
	codes := make(map[string]int)
	if text := os.Getenv("XDSPUB_SOAK_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		judgeEachClient(t, seed, codes)
		return
	}
	if text := os.Getenv("XDSPUB_SOAK"); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		seeds := 0
		for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); seeds++ {
			judgeEachClient(t, rand.Uint64(), codes)
		}
		t.Log(seeds, "seeds")
	}
	for seed := uint64(0); seed < 8 && !t.Failed(); seed++ {
		judgeEachClient(t, seed, codes)
	}
	t.Log(codes)
	for _, code := range []string{
		"bad-certificate", "cluster-of-clusters", "conflicting-cache", "duplicate-address", "listener-loop", "no-healthy-endpoints", "orphan-endpoints",
		"unresolved-reference/cluster", "unresolved-reference/endpoint-assignment", "unresolved-reference/http-filter",
		"unresolved-reference/route-configuration", "unresolved-reference/secret",
	} {
		if codes[code] == 0 {
			t.Errorf("the trees have no %s: too little to show anything", code)
		}
	}
}

// judgeEachClient compares the findings in a few random trees. Each tree is an edit of the tree before. It counts
// the codes of the findings.
func judgeEachClient(t *testing.T, seed uint64, codes map[string]int) {
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	disable := []string{"variant-gap", "variant-constraints"}
	options := check.Options{Path: dir, Rules: check.Rules{Disable: disable}, AllowEmpty: true}
	again := check.New(options)
	files := make(map[string]string)
	for range 3 {
		next := randomTree(r)
		if len(files) > 0 && r.IntN(2) == 0 { // replace the files of one kind
			some := maps.Clone(files)
			name := slices.Sorted(maps.Keys(next))[r.IntN(len(next))]
			for other := range some {
				if other[:len(other)-len("0.yaml")] == name[:len(name)-len("0.yaml")] {
					delete(some, other)
				}
			}
			for other, text := range next {
				if other[:len(other)-len("0.yaml")] == name[:len(name)-len("0.yaml")] {
					some[other] = text
				}
			}
			next = some
		}
		write(t, dir, files, next)
		files = next
		cold, err := check.New(options).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		enumerate(t, cold.Variants, validate.Options{Disable: disable, Now: time.Now()}).compare(t, cold.Diagnostics)
		watched, err := again.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is, want := printed(watched.Diagnostics), printed(cold.Diagnostics); is != want {
			t.Errorf("again\n%s\ncold\n%s", is, want)
		}
		if t.Failed() {
			t.Fatalf("XDSPUB_SOAK_SEED=%d: %v", seed, files)
		}
		for _, d := range cold.Diagnostics {
			codes[d.Code]++
		}
	}
}

// write writes the files next into a folder that has files.
func write(t *testing.T, dir string, files, next map[string]string) {
	t.Helper()
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
}

// printed returns findings as text, one on each line.
func printed(list diag.List) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintln(&b, d.Severity, textOf(d, d.Message))
	}
	return b.String()
}

// checked returns the findings of a check as text, one on each line.
func checked(t *testing.T, o check.Options) string {
	t.Helper()
	result, err := check.New(o).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return printed(result.Diagnostics)
}

// TestTooManyClients: if constraints distinguish too many clients, a finding reports that, and the check ends.
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
	lone := "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: lone\ntype: EDS\n"
	if err := os.WriteFile(filepath.Join(dir, "lone.yaml"), []byte(lone), 0o644); err != nil {
		t.Fatal(err)
	}
	options := check.Options{Path: dir, Rules: check.Rules{Disable: []string{"variant-gap"}}}
	is := checked(t, options)
	if !strings.Contains(is, "error "+dir+"/lone.yaml") {
		t.Errorf("what all clients have is no error:\n%s", is)
	}
	if !strings.Contains(is, "the variants were judged for 1000 clients, not for all: they tell more than 1000 clients apart") {
		t.Error(is)
	}

	var exist []string
	for i := range 40 {
		exist = append(exist, fmt.Sprintf("{and_constraints: {constraints: [{constraint: {key: a%02d, exists: {}}}, {constraint: {key: z%02[1]d, exists: {}}}]}}", i))
	}
	write("wild", "{or_constraints: {constraints: ["+strings.Join(exist, ", ")+"]}}")
	is = checked(t, options)
	if !strings.Contains(is, "variant-overlap nobody can say which clients the variants of cluster \"wild\" are for") {
		t.Error(is)
	}
}

// mostClients is the largest number of clients that a check judges.
const mostClients = 1_000
