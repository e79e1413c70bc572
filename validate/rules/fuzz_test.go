package rules_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/tools/mutate"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// eachSeed means that every fifth example is a seed. With all examples as seeds, the fuzzer would need half a
// minute before it begins.
const eachSeed = 5

// FuzzRules: for any file, all rules together end soon and take little memory. Their findings are sorted, are the
// same each time, and are inside the file.
func FuzzRules(f *testing.F) {
	for i, text := range ruleExamples(f) {
		if i%eachSeed == 0 {
			f.Add(text)
		}
	}
	f.Fuzz(judgeText)
}

// FuzzMutants is FuzzRules for files that can be decoded: examples of several rules, with faults that a seed adds.
func FuzzMutants(f *testing.F) {
	var (
		corpus mutate.Corpus
		all    []any
	)
	for _, text := range ruleExamples(f) {
		list, err := mutate.Resources(text)
		if err != nil {
			f.Fatal(err)
		}
		corpus.Learn(list)
		all = append(all, list...)
	}
	for i := 0; i < len(all); i += 5 * eachSeed {
		f.Add(uint16(i), uint64(i), byte(i))
	}
	f.Fuzz(func(t *testing.T, first uint16, seed uint64, faults byte) {
		const most = 4
		r := rand.New(rand.NewPCG(seed, 0))
		list := []any{all[int(first)%len(all)]}
		for range r.IntN(most) {
			list = append(list, all[r.IntN(len(all))])
		}
		for range 1 + faults%most {
			list, _ = corpus.Mutate(r, list)
		}
		text, err := json.MarshalIndent(map[string]any{"resources": list}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		judgeText(t, text)
	})
}

// judgeText judges a file twice.
func judgeText(t *testing.T, text []byte) {
	const (
		file = "file.yaml"
		long = 20 * time.Second // much longer than a busy machine needs
	)
	most := uint64(64<<20 + 4096*len(text))
	options := validate.Options{Now: certs.Now}
	for _, r := range rules.All {
		if r.OptIn {
			options.Enable = append(options.Enable, r.Code)
		}
	}
	var (
		found  [2]diag.List
		took   [2]time.Duration
		before runtime.MemStats
		after  runtime.MemStats
	)
	loaded := load.Parse(load.Input{Name: file, Format: "yaml", Data: text})
	for i := range found {
		runtime.ReadMemStats(&before)
		start := time.Now()
		found[i] = validate.Run(t.Context(), loaded.Snapshot(), rules.All, options)
		took[i] = time.Since(start)
		runtime.ReadMemStats(&after)
	}
	if slices.Min(took[:]) > long {
		t.Errorf("%d bytes take %v", len(text), took)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes take %d bytes of memory", len(text), used)
	}
	if diff := cmp.Diff(found[0], found[1]); diff != "" {
		t.Errorf("the findings differ:\n%s", diff)
	}
	if diff := cmp.Diff(found[0], slices.Clone(found[0]).Sort()); diff != "" {
		t.Errorf("the findings are not sorted:\n%s", diff)
	}
	lines := bytes.Split(text, []byte("\n"))
	inside := func(p diag.Position) bool {
		return p.File == file && p.Line >= 1 && p.Line <= len(lines) && p.Column >= 1 && p.Column <= utf8.RuneCount(lines[p.Line-1])+1
	}
	for _, d := range found[0] {
		if !inside(d.Position) || slices.ContainsFunc(d.Related, func(r diag.Related) bool { return !inside(r.Position) }) {
			t.Errorf("outside of the file: %s %v", d, d.Related)
		}
		if strings.ContainsAny(d.Message+d.Help, "\n\r") || !utf8.ValidString(d.Message+d.Help) {
			t.Errorf("no line of text: %q, %q", d.Message, d.Help)
		}
	}
}

// ruleExamples returns the files of the examples of all rules.
func ruleExamples(f *testing.F) (texts [][]byte) {
	f.Helper()
	names, err := filepath.Glob("*/testdata/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			text, err := certs.Expand(file.Data)
			if err != nil {
				f.Fatal(err)
			}
			if strings.Contains(file.Name, "/") && filepath.Ext(file.Name) == ".yaml" {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
