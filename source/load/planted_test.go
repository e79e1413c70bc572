package load_test

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/source/load"
)

// fault is a mistake in a line.
type fault struct {
	// at matches the lines that can have the fault.
	at *regexp.Regexp
	// plant returns the line with the fault: one line, or two lines of which the first is wrong.
	plant func(line string) string
}

// faults are the faults that hide no other fault: each is in one value or one key. Broken syntax, doubled keys
// and unknown @types are not among them, because they hide the rest of a file or of a message.
var faults = map[string]fault{
	"unknown field": {
		regexp.MustCompile(`^ *(name|domains|stat_prefix|connect_timeout|cluster): [^"]`), // a quoted value is in a Struct, which accepts any key
		func(line string) string {
			key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			return indentOf(line) + "no_such_" + key + ": 1\n" + line
		},
	},
	"duration": {
		regexp.MustCompile(`^ *[a-z_]+: [0-9.]+s$`),
		func(line string) string { return line[:strings.Index(line, ": ")] + ": 5 parsecs" },
	},
	"wrong kind": {
		regexp.MustCompile(`^ *(name|stat_prefix): [a-z]+$`),
		func(line string) string { return line[:strings.Index(line, ": ")] + ": {a: 1}" },
	},
	"unknown enum value": {
		regexp.MustCompile(`^ *(type|lb_policy|codec_type|dns_lookup_family): [A-Z0-9_]+$`),
		func(line string) string { return line + "_NO_SUCH" },
	},
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }

// TestPlanted plants several faults at random places of the examples, and checks that one Load reports each at
// its line, and nothing else.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("reads hundreds of files, in one goroutine: nothing for the race detector")
	}
	random := rand.New(rand.NewPCG(1, 2))
	planted := 0
	for range 20 {
		for name, text := range exampleFiles(t) {
			faulty, want := plant(random, text)
			planted += len(want)
			result := load.Parse(load.Input{Name: name, Format: "yaml", Data: []byte(faulty)})
			var got []int
			for _, d := range result.Diagnostics {
				if d.Severity == diag.Error {
					got = append(got, d.Position.Line)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: lines with faults, -planted +reported:\n%s\n%v\n%s", name, diff, result.Diagnostics, faulty)
			}
		}
	}
	if planted < 1000 {
		t.Errorf("only %d faults were planted: the examples are written in another way now", planted)
	}
}

// plant plants up to two faults of each kind into a text, and returns their lines.
func plant(random *rand.Rand, text string) (faulty string, lines []int) {
	old := strings.Split(text, "\n")
	in := make(map[int]fault)
	for _, kind := range slices.Sorted(maps.Keys(faults)) {
		var fits []int
		for i, line := range old {
			if faults[kind].at.MatchString(line) {
				fits = append(fits, i)
			}
		}
		for range min(2, len(fits)) {
			in[fits[random.IntN(len(fits))]] = faults[kind]
		}
	}
	var all []string
	for i, line := range old {
		if f, ok := in[i]; ok {
			lines = append(lines, len(all)+1)
			line = f.plant(line)
		}
		all = append(all, strings.Split(line, "\n")...)
	}
	return strings.Join(all, "\n"), lines
}

// exampleFiles returns the resource files of the examples in YAML, by path.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir("../../examples", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		// A file that names other files can be read only beside them.
		if err == nil && strings.Contains(string(data), "@type") && !strings.Contains(string(data), "filename:") && !load.Parse(load.Input{Name: path, Format: "yaml", Data: data}).Diagnostics.HasErrors() {
			files[path] = string(data)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	return files
}
