package agreement

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/check"
	"xdspub/check/oracle"
	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/envoy/trial"
	"xdspub/source/follow"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
)

var askAll = flag.Bool("versions", false, "ask the oldest Envoy about all cases, and write testdata/versions.txt")

const versionsHead = `# The sides of cases that an older Envoy judges otherwise than 1.40, each asked by --mode validate: the release, what it does,
# the side, its words. The oldest was asked about all sides, the others about those on which it differs.
#
# make agreement writes this file. Where the cases are others than those of the sum below, it is to be run again.
`

// side is one side of a case.
type side struct {
	*testCase
	name string
}

func (s side) String() string { return s.testCase.name + "/" + s.name }

// TestVersions: if an older Envoy accepts or refuses a side unlike the latest Envoy, so does validate with
// --envoy-version. For other sides, validate has the same verdict for each version.
func TestVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Envoy")
	}
	for _, v := range envoyapi.Versions {
		envoytest.Version(t, v.Name) // skips the test if an Envoy is missing
	}
	certs := t.TempDir()
	certificates(t, certs)
	var sides []side
	for _, c := range read(t) {
		for _, name := range slices.Sorted(maps.Keys(c.sides)) {
			sides = append(sides, side{c, name})
		}
	}
	sum := fmt.Sprintf("# sum %x\n", sumOfCases(t))
	if *askAll {
		lines := askVersions(t, sides, certs)
		golden(t, filepath.Join("testdata", "versions.txt"), []byte(versionsHead+sum+strings.Join(lines, "")))
		return
	}
	text, err := os.ReadFile("testdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), sum) {
		t.Error("testdata/versions.txt is about other cases: make agreement asks the older Envoys again")
	}
	known := make(map[string]bool) // by release, reaction and side
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] != "#" {
			known[strings.TrimSuffix(strings.Join(words[:3], " "), ":")] = true
		}
	}
	excused := reasons(t, "versions-otherwise")
	askAgain(t, sides, certs, known)
	for _, line := range judgedOtherwise(t, sides, certs, known) {
		if !known[line] && excused[line] == "" {
			t.Errorf("validate: %s, and that Envoy does not", line)
		}
		delete(known, line)
		delete(excused, line)
	}
	for line := range known {
		if excused[line] == "" {
			t.Errorf("%s, and validate does not say it", line)
		}
		delete(excused, line)
	}
	for line := range excused {
		t.Errorf("versions-otherwise: %s stands there, and is not so", line)
	}
}

// judgedOtherwise returns the verdicts of validate for older versions, as lines of versions.txt without Envoy's
// message. It returns a verdict that differs from the verdict for the latest version, or that is a known line.
func judgedOtherwise(t *testing.T, sides []side, certs string, known map[string]bool) []string {
	t.Helper()
	lists := make([][]string, len(sides))
	eachSide(t, sides, func(t *testing.T, i int, s side) {
		latest := s.errorsFor(t, envoyapi.Latest, certs)
		for _, v := range slices.Backward(envoyapi.Versions[1:]) {
			errors := s.errorsFor(t, v, certs)
			line := lineOf(v, errors > 0, s)
			if (errors > 0) != (latest > 0) || known[line] {
				lists[i] = append(lists[i], line)
			} else if v == oldest() {
				return // newer versions have everything that the oldest has
			}
		}
	})
	return slices.Concat(lists...)
}

func oldest() *envoyapi.Version { return envoyapi.Versions[len(envoyapi.Versions)-1] }

func lineOf(v *envoyapi.Version, refuses bool, s side) string {
	does := "takes"
	if refuses {
		does = "refuses"
	}
	return fmt.Sprintf("%s %s %s", v.Name, does, s)
}

// errorsFor returns how many errors validate finds for a version.
func (s side) errorsFor(t *testing.T, v *envoyapi.Version, certs string) int {
	t.Helper()
	f, err := s.judge(s.name, t.TempDir(), certs, check.Rules{Envoy: v})
	if err != nil {
		t.Errorf("%s: %v", s, err)
	}
	return f.errors
}

// askVersions returns the lines of versions.txt.
func askVersions(t *testing.T, sides []side, certs string) []string {
	t.Helper()
	lists := make([][]string, len(sides))
	eachSide(t, sides, func(t *testing.T, i int, s side) {
		followed := s.follow(t, s.name, certs)
		if followed.Diagnostics.HasErrors() {
			return // xdspub can't read the resource, for any version
		}
		said := askVersion(t, oldest(), followed)
		if said == "" && s.isTaken() {
			return
		}
		latest := askVersion(t, envoyapi.Latest, followed)
		for _, v := range slices.Backward(envoyapi.Versions[1:]) {
			if v != oldest() {
				said = askVersion(t, v, followed)
			}
			if (said == "") != (latest == "") {
				words := said
				if words == "" {
					words = "the latest: " + latest
				}
				lists[i] = append(lists[i], lineOf(v, said != "", s)+": "+words+"\n")
			} else if v == oldest() {
				return
			}
		}
	})
	return slices.Concat(lists...)
}

// askAgain asks the Envoys whether a sample of the lines of versions.txt is still right.
func askAgain(t *testing.T, sides []side, certs string, known map[string]bool) {
	t.Helper()
	var listed []side
	count, every := 0, portion.Every(4, 4)
	for _, s := range sides {
		if !known[lineOf(oldest(), true, s)] && !known[lineOf(oldest(), false, s)] {
			continue
		}
		if count++; count%every == 0 {
			listed = append(listed, s)
		}
	}
	eachSide(t, listed, func(t *testing.T, _ int, s side) {
		followed := s.follow(t, s.name, certs)
		for _, v := range envoyapi.Versions[1:] {
			refuses := askVersion(t, v, followed) != ""
			if known[lineOf(v, !refuses, s)] {
				t.Errorf("Envoy %s refuses it: %v, and versions.txt says otherwise", v.Name, refuses)
			}
		}
	})
}

// isTaken reports whether the latest Envoy took the side.
func (s side) isTaken() bool { return s.name == "good" || strings.HasPrefix(s.outcome, "accepted") }

// askVersion returns the reason of a version's Envoy for the refusal of a side; empty if it accepts the side.
func askVersion(t *testing.T, v *envoyapi.Version, f *follow.Result) string {
	t.Helper()
	list, err := oracle.New(trial.Envoy{Program: envoytest.Version(t, v.Name)}).Judge(t.Context(), oracle.Candidate{Snapshot: f.Snapshot, Bootstrap: f.Bootstrap.Message().(*bootstrapv3.Bootstrap)})
	if err != nil {
		t.Error(err)
	}
	for _, d := range list {
		if d.Severity == diag.Error {
			words, _, _ := strings.Cut(d.Message, ": {") // the whole bootstrap
			return strings.Join(strings.Fields(words), " ")
		}
	}
	return ""
}

// sumOfCases returns the hash of the cases and of older-versions.txt, from which versions.txt is made.
func sumOfCases(t *testing.T) []byte {
	t.Helper()
	names, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, name := range append(names, "../../envoy/envoyapi/older-versions.txt") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %x\n", filepath.Base(name), sha256.Sum256(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))))
	}
	return sum.Sum(nil)
}

// eachSide calls f for all sides, in parallel.
func eachSide(t *testing.T, sides []side, f func(t *testing.T, i int, s side)) {
	t.Helper()
	t.Run("sides", func(t *testing.T) {
		for i, s := range sides {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				f(t, i, s)
			})
		}
	})
}
