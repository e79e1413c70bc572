package mutate_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/tools/envoytest"
	"xdspub/tools/mutate"
	"xdspub/tools/portion"
)

var (
	count = flag.Int("mutants", 500, "how many mutants to judge; 0 means as many as there is time for")
	limit = flag.Duration("time", 0, "begin no mutant after this `time`; 0 means that it takes as long as it takes")
	seed  = flag.Uint64("seed", 1, "seed of the mutations")
	sums  = flag.String("sums", "", "write the sums to a `file`, in Markdown")
)

// mutant is a base in which one file has a fault.
type mutant struct {
	base
	n     int
	fault string
	verdict
	err error
}

// verdict has the verdicts of Envoy and of validate.
type verdict struct {
	envoy    string // one of the outcomes
	words    string
	findings diag.List
}

// Envoy's reactions to a mutant.
const (
	accepted = "accepted"
	refused  = "refused"
	dropped  = "dropped a field"
	ended    = "ended"
	hung     = "hung"
)

// The outcomes that the sums count.
const (
	bothAccept = "both accept"
	bothRefuse = "both refuse"
	missed     = "missed"
	falseAlarm = "false alarm"
)

// outcome says how both verdicts agree. An error is no false alarm if its message says that Envoy accepts the
// configuration: a reference is missing, and requests fail.
func (v verdict) outcome() string {
	wrongs := 0
	for _, d := range v.findings {
		if d.Severity == diag.Error && !strings.Contains(d.Message, "Envoy accepts this") {
			wrongs++
		}
	}
	switch {
	case v.envoy == accepted && wrongs == 0:
		return bothAccept
	case v.envoy == accepted:
		return falseAlarm
	case v.findings.HasErrors():
		return bothRefuse
	default:
		return missed
	}
}

// String returns the text that the regular expressions of testdata/known match.
func (m *mutant) String() string {
	text := fmt.Sprintf("%s: %s: %s (%s, %s)", m.outcome(), m.name, m.fault, m.envoy, m.words)
	for _, d := range m.findings {
		if d.Severity == diag.Error {
			text += "\n    " + d.String()
		}
	}
	return text
}

// TestMutants compares validate with the real Envoy on random faults. It judges a sixth of the mutants, since each
// found disagreement becomes an example of a rule or a case of tools/agreement. make mutate and make soak
// PART=whole judge all mutants. testdata/known has the known disagreements with the reasons, and other
// disagreements fail the test.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of Envoys")
	}
	if *count == 0 && *limit == 0 {
		t.Fatal("neither -mutants nor -time says when to end")
	}
	envoytest.Binary(t)
	known := knownDisagreements(t)
	start := time.Now()
	judged := judgeMutants(t)
	if t.Failed() { // an Envoy did not start, and gave no verdict
		t.FailNow()
	}
	took := time.Since(start).Round(time.Second)
	found := make(map[string]int)
	for _, m := range judged {
		outcome := m.outcome()
		switch {
		case m.err != nil:
			t.Errorf("mutant %d of seed %d: %s: %s: %v", m.n, *seed, m.name, m.fault, m.err)
		case outcome == bothAccept || outcome == bothRefuse:
			found[outcome]++
		case slices.ContainsFunc(known, func(r *regexp.Regexp) bool { return r.MatchString(m.String()) }):
			found[outcome+", known"]++
		default:
			found[outcome]++
			t.Errorf("mutant %d of seed %d: %v", m.n, *seed, m)
		}
	}
	t.Logf("%d mutants in %v: %v", len(judged), took, found)
	if *sums != "" {
		if err := os.WriteFile(*sums, document(len(judged), took, found), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBases: Envoy and validate accept all bases. A sample has a third of the bases.
func TestBases(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred Envoys")
	}
	envoytest.Binary(t)
	bases := append(readExamples(t), readRules(t, &mutate.Corpus{})...)
	t.Logf("%d bases", len(bases))
	every := portion.Every(3, 3)
	inParallel(func(yield func(base) bool) {
		for i := 0; i < len(bases); i += every {
			if !yield(bases[i]) {
				return
			}
		}
	}, func(b base) {
		switch v, err := b.judge(t); {
		case err != nil:
			t.Error(err)
		case v.outcome() != bothAccept:
			t.Errorf("%s: %s: %s, %s; %v", b.name, v.outcome(), v.envoy, v.words, v.findings)
		}
	})
}

// judgeMutants makes mutants and judges them.
func judgeMutants(t *testing.T) (judged []*mutant) {
	var corpus mutate.Corpus
	bases := append(readExamples(t), readCases(t)...)
	for _, b := range bases {
		for _, name := range b.names() {
			corpus.Learn(b.files[name])
		}
	}
	bases = append(bases, readRules(t, &corpus)...)
	inParallel(func(yield func(*mutant) bool) {
		r := rand.New(rand.NewPCG(*seed, 0))
		start, every := time.Now(), 1
		if *limit == 0 {
			every = portion.Every(6, 6)
		}
		for n := 0; (*count == 0 || n < *count) && (*limit == 0 || time.Since(start) < *limit) && !t.Failed(); n++ {
			m := newMutant(r, &corpus, bases[r.IntN(len(bases))], n)
			if n%every != 0 {
				continue
			}
			judged = append(judged, m)
			yield(m)
		}
	}, func(m *mutant) { m.verdict, m.err = m.judge(t) })
	return judged
}

// inParallel calls f for each element of list, with as many calls at a time as there are cores. If a call ends its
// goroutine, as t.Fatal does, another call takes its place.
func inParallel[T any](list iter.Seq[T], f func(T)) {
	var calls errgroup.Group
	calls.SetLimit(runtime.GOMAXPROCS(0))
	for element := range list {
		calls.Go(func() error { f(element); return nil })
	}
	_ = calls.Wait()
}

// newMutant makes a fault in one file of a base, and two faults in every tenth mutant.
func newMutant(r *rand.Rand, corpus *mutate.Corpus, b base, n int) *mutant {
	names := slices.DeleteFunc(b.names(), func(name string) bool { return len(b.files[name]) == 0 })
	name := names[r.IntN(len(names))]
	list, fault := corpus.Mutate(r, b.files[name])
	if n%10 == 9 {
		second := ""
		list, second = corpus.Mutate(r, list)
		fault += "; " + second
	}
	b.files = maps.Clone(b.files)
	b.files[name] = list
	return &mutant{base: b, n: n, fault: name + fault}
}

// judge asks Envoy and validate.
func (b base) judge(t *testing.T) (v verdict, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(dir)
	if err := b.write(dir); err != nil {
		return v, err
	}
	if v.findings, err = validate(dir); err != nil {
		return v, err
	}
	const patience = 20 * time.Second // longer than Envoy waits for a missing server
	trial := envoytest.Try(t, envoytest.Options{Bootstrap: b.bootstrap(), Dir: dir, Args: []string{"-l", "warning"}}, patience)
	switch {
	case trial.Ended:
		v.envoy = ended
	case !trial.Live:
		v.envoy = hung
	case trial.Refused:
		v.envoy = refused
	case trial.Dropped:
		v.envoy = dropped
	default:
		v.envoy = accepted
		return v, nil
	}
	v.words = said(trial.Log)
	return v, nil
}

// validate returns the findings of the bootstrap in a directory.
func validate(dir string) (diag.List, error) {
	checked, err := check.Bootstrap(context.Background(), check.BootstrapOptions{Path: filepath.Join(dir, "boot.json"), Root: dir})
	if err != nil {
		return nil, err
	}
	list := checked.Diagnostics
	for i := range list {
		list[i].File = strings.TrimPrefix(list[i].File, dir+string(filepath.Separator))
	}
	return list, nil
}

var logged = regexp.MustCompile(`(?m)^\[[^]]*\]\[[^]]*\]\[(?:warning|error|critical)\]\[[^]]*\] \[[^]]*\] (.*)$`)

// said returns Envoy's reason for a refusal.
func said(log string) string {
	var all []string
	for _, line := range logged.FindAllStringSubmatch(log, -1) {
		if text := line[1]; !strings.Contains(text, "no configured limit") && !strings.Contains(text, "Deprecated field") && !strings.Contains(text, "work-in-progress") {
			all = append(all, text)
		}
	}
	const most = 400
	text := strings.Join(all, " | ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// knownDisagreements reads testdata/known: reasons, and indented below each reason the regular expressions of its
// disagreements.
func knownDisagreements(t *testing.T) (known []*regexp.Regexp) {
	t.Helper()
	data, err := os.ReadFile("testdata/known")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		pattern, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !indented {
			continue
		}
		r, err := regexp.Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, r)
	}
	return known
}

// document returns the part of docs/evidence/agreement.md about mutants.
func document(judged int, took time.Duration, found map[string]int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `## Random faults

`+"`make mutate`"+` puts random faults into valid configurations: the published examples, and the good sides of the cases
above. It drops, doubles, moves, retypes and renames fields, breaks names, moves values to their limits, and adds parts
of other configurations and any fields of the API. validate and the real Envoy judge each mutant: in CI 500 of a fixed
seed, in the last long run, of seed %d, %d in %v:

| | validate finds an error | validate finds no error |
|---|---|---|
| Envoy refuses it, crashes, or drops a field | %d | %d |
| Envoy accepts it | %d | %d |
`, *seed, judged, took, found[bothRefuse], found[missed]+found[missed+", known"], found[falseAlarm]+found[falseAlarm+", known"], found[bothAccept])
	fmt.Fprintf(&b, `
%d disagreements are on purpose, for the reasons in `+"`tools/mutate/testdata/known`"+`. An error about requests that fail in
an accepted configuration, such as for a missing cluster, is no disagreement.
`, found[missed+", known"]+found[falseAlarm+", known"])
	return b.Bytes()
}
