package mutate_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/internal/envoytest"
	"xdspub/internal/mutate"
	"xdspub/pipeline"
	"xdspub/publish"
)

var (
	count = flag.Int("mutants", 300, "how many mutants to judge")
	limit = flag.Duration("time", 0, "judge as many mutants as there is time for, instead of -mutants")
	seed  = flag.Uint64("seed", 1, "seed of the mutations")
	write = flag.String("write", "", "write the sums to a `FILE`, in Markdown")
)

// base is a configuration that works: DiscoveryResponses by file name, below the
// Envoy's working directory.
type base struct {
	name  string
	files map[string]map[string]any
}

const bootstrap = `{"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}}, "node": {"id": "node", "cluster": "cluster"},
 "dynamic_resources": {"cds_config": {"path_config_source": {"path": %q}}, "lds_config": {"path_config_source": {"path": %q}}}}`

func (b base) bootstrap() []byte {
	at := func(api string) string {
		for name := range b.files {
			if strings.HasPrefix(filepath.Base(name), api+".") {
				return "./" + name
			}
		}
		return ""
	}
	return fmt.Appendf(nil, bootstrap, at("cds"), at("lds"))
}

// mutant is one base with one fault.
type mutant struct {
	n     int
	base  base
	file  string
	fault string
	data  []byte
	verdict
}

// verdict is what both sides say.
type verdict struct {
	envoy    string // "accepted", "refused", "dropped a field", "ended", "hung"
	words    string
	findings diag.List
}

// disagreement tells how the two differ, if they do. An error where Envoy accepts is
// no false alarm where it says so itself: the reference is missing, and requests fail.
func (v verdict) disagreement() string {
	refuses := v.findings.HasErrors()
	switch {
	case v.envoy != "accepted" && !refuses:
		return "missed"
	case v.envoy == "accepted" && refuses && slices.ContainsFunc(v.findings, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && !strings.Contains(d.Message, "Envoy accepts it")
	}):
		return "false alarm"
	}
	return ""
}

// TestMutants holds validate against the real Envoy on random faults. What they
// disagree on has to stand in testdata/known, with the reason.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of Envoys")
	}
	envoytest.Binary(t)
	bases := read(t)
	var corpus mutate.Corpus
	for _, b := range bases {
		for _, name := range names(b) {
			corpus.Learn(b.files[name]["resources"])
		}
	}
	known := knownDisagreements(t)
	start := time.Now()
	work := make(chan *mutant)
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		judged  []*mutant
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for m := range work {
				m.judge(t)
				mu.Lock()
				judged = append(judged, m)
				mu.Unlock()
			}
		})
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	for n := 0; *limit > 0 && time.Since(start) < *limit || *limit == 0 && n < *count; n++ {
		work <- make1(r, &corpus, bases, n)
	}
	close(work)
	workers.Wait()
	slices.SortFunc(judged, func(a, b *mutant) int { return a.n - b.n })

	sums := make(map[string]int)
	for _, m := range judged {
		how := m.disagreement()
		if how == "" {
			if m.envoy == "accepted" {
				sums["both accept"]++
			} else {
				sums["both refuse"]++
			}
			continue
		}
		text := fmt.Sprintf("%s: %s: %s (%s, %s)", how, m.base.name, m.fault, m.envoy, m.words)
		for _, d := range m.findings {
			if d.Severity == diag.Error {
				text += "\n    " + d.String()
			}
		}
		if reason := reasonFor(known, text); reason != "" {
			sums[how+", known"]++
			continue
		}
		sums[how]++
		t.Errorf("mutant %d of seed %d: %s", m.n, *seed, text)
	}
	t.Logf("%d mutants in %v: %v", len(judged), time.Since(start).Round(time.Second), sums)
	if *write != "" {
		if err := os.WriteFile(*write, document(len(judged), time.Since(start), sums), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func document(n int, took time.Duration, sums map[string]int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "## Random faults\n\n`make mutate` drops, doubles, retypes and renames fields of configurations that work, breaks names,\nmoves values to their limits and puts in parts of others, and gives each to both. The last long run,\nseed %d, judged %d mutants in %v:\n\n| | |\n|---|---|\n", *seed, n, took.Round(time.Second))
	for _, what := range []string{"both accept", "both refuse", "missed", "false alarm", "missed, known", "false alarm, known"} {
		fmt.Fprintf(&b, "| %s | %d |\n", what, sums[what])
	}
	b.WriteString("\nKnown disagreements stand in `internal/mutate/testdata/known`, each with its reason.\n")
	return []byte(b.String())
}

// make1 makes mutant n.
func make1(r *rand.Rand, corpus *mutate.Corpus, bases []base, n int) *mutant {
	b := bases[r.IntN(len(bases))]
	file := names(b)[r.IntN(len(b.files))]
	data, _ := json.Marshal(b.files[file]) // of JSON values: can't fail
	document := decode(data)
	fault := corpus.Mutate(r, document)
	data, _ = json.Marshal(document)
	return &mutant{n: n, base: b, file: file, fault: file + fault, data: data}
}

// judge asks both.
func (m *mutant) judge(t *testing.T) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	put := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Error(err)
		}
	}
	put("boot.json", m.base.bootstrap())
	for _, name := range names(m.base) {
		data, _ := json.Marshal(m.base.files[name])
		if name == m.file {
			data = m.data
		}
		put(name, data)
	}
	checked, err := pipeline.New(pipeline.Options{Source: filepath.Join(dir, "boot.json"), Follow: true, Root: dir}).Check()
	if err != nil {
		t.Error(err)
		return
	}
	for i := range checked.Diagnostics {
		checked.Diagnostics[i].File = strings.TrimPrefix(checked.Diagnostics[i].File, dir+"/")
	}
	trial := envoytest.Try(t, envoytest.Options{Bootstrap: m.base.bootstrap(), Dir: dir, Args: []string{"-l", "warning"}}, 15*time.Second)
	m.verdict = verdict{findings: checked.Diagnostics, envoy: "accepted"}
	switch {
	case trial.Ended:
		m.envoy = "ended"
	case !trial.Live:
		m.envoy = "hung"
	case trial.Refused:
		m.envoy = "refused"
	case trial.Dropped:
		m.envoy = "dropped a field"
	default:
		return
	}
	m.words = said(trial.Log)
}

var logged = regexp.MustCompile(`(?m)^\[[^]]*\]\[[^]]*\]\[(?:warning|error|critical)\]\[[^]]*\] \[[^]]*\] (.*)$`)

// said is what Envoy says of a refusal.
func said(log string) string {
	var all []string
	for _, line := range logged.FindAllStringSubmatch(log, -1) {
		if text := line[1]; !strings.Contains(text, "no configured limit") && !strings.Contains(text, "Deprecated field") {
			all = append(all, text)
		}
	}
	text := strings.Join(all, " | ")
	return text[:min(len(text), 400)]
}

type disagreement struct {
	pattern *regexp.Regexp
	reason  string
}

// knownDisagreements reads testdata/known: a reason, and below it indented the
// regular expressions that find what it is about.
func knownDisagreements(t *testing.T) (known []disagreement) {
	t.Helper()
	data, err := os.ReadFile("testdata/known")
	if err != nil {
		t.Fatal(err)
	}
	reason := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if pattern, ok := strings.CutPrefix(line, "    "); ok {
			known = append(known, disagreement{regexp.MustCompile(pattern), reason})
		} else if line != "" {
			reason = line
		}
	}
	return known
}

func reasonFor(known []disagreement, text string) string {
	for _, k := range known {
		if k.pattern.MatchString(text) {
			return k.reason
		}
	}
	return ""
}

func names(b base) []string {
	var list []string
	for name := range b.files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// read reads what mutants are made of: what the examples are published as, and the
// good sides of the agreement's cases.
func read(t *testing.T) (bases []base) {
	t.Helper()
	for _, name := range []string{"quickstart", "multi", "kubernetes/config"} {
		bases = append(bases, published(t, name))
	}
	cases, err := filepath.Glob("../agreement/testdata/cases/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	seen := make(map[string]bool)
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b := base{name: strings.TrimSuffix(filepath.Base(name), ".txtar"), files: make(map[string]map[string]any)}
		for _, api := range []string{"cds", "lds"} {
			b.files["xds/"+api+".yaml"] = map[string]any{"resources": []any{}}
		}
		var all []byte
		usable := true
		for _, f := range archive.Files {
			file, good := strings.CutPrefix(f.Name, "good/")
			// The certificates, and a bootstrap of its own, are for the case alone.
			usable = usable && f.Name != "boot.yaml" && !strings.Contains(string(f.Data), "certs/")
			if !good {
				continue
			}
			data, err := yaml.YAMLToJSON(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			b.files["xds/"+file] = decode(data)
			all = append(all, data...)
		}
		if usable && !seen[string(all)] {
			seen[string(all)] = true
			bases = append(bases, b)
		}
	}
	return bases
}

// published is an example as it reaches Envoy.
func published(t *testing.T, example string) base {
	t.Helper()
	const placeholder = "/published"
	out := filepath.Join(t.TempDir(), "out")
	p := pipeline.New(pipeline.Options{Source: filepath.Join("..", "..", "examples", example), Out: out, EnvoyPath: placeholder, Endpoints: pipeline.EndpointsAuto, InotifyBudget: 120, Ignore: []string{"ci", "README.md", "*.pb"}})
	checked, err := p.Check()
	if err != nil || !checked.Accepted() {
		t.Fatalf("%s: %v %v", example, err, checked.Diagnostics)
	}
	plan, list, err := p.Plan(checked.Snapshot, time.Now())
	if err != nil || list.HasErrors() {
		t.Fatalf("%s: %v %v", example, err, list)
	}
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := p.Publish(context.Background(), dir, plan); err != nil {
		t.Fatal(err)
	}
	b := base{name: example, files: make(map[string]map[string]any)}
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, ".xdspub") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(out, path)
		b.files["xds/"+name] = decode([]byte(strings.ReplaceAll(string(data), placeholder, "./xds")))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(data []byte) map[string]any {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v map[string]any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}
