package schemas

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// golden returns a golden report of the tests of package report: a report of hostile findings, or an empty report.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../report/testdata/" + name + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSARIF: a log is valid by the schema of SARIF 2.1.0, and has only properties of the schema.
func TestSARIF(t *testing.T) {
	log := sarifLog(t, golden(t, "sarif"))
	sarifLog(t, golden(t, "sarif-empty"))
	rules := log.Runs[0].Tool.Driver.Rules
	for _, result := range log.Runs[0].Results {
		if rule := *rules[result.RuleIndex].ID; rule != *result.RuleID {
			t.Errorf("a result of %s has the rule %s", *result.RuleID, rule)
		}
	}
}

// sarifLog reads a log.
func sarifLog(t *testing.T, text []byte) *sarif.Report {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(new(sarif.Report)); err != nil {
		t.Error(err)
	}
	log, err := sarif.FromBytes(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range log.Runs { // the library does not set the defaults
		run.Language, run.Tool.Driver.Language, run.NewlineSequences = "en-US", "en-US", []string{"\r\n", "\n"}
	}
	if err := log.Validate(); err != nil {
		t.Error(err)
	}
	return log
}

// TestJUnit: a reader of JUnit reports finds each test case, and the failed ones.
func TestJUnit(t *testing.T) {
	suites, err := junit.Ingest(golden(t, "junit"))
	if err != nil {
		t.Fatal(err)
	}
	total := func(s junit.Suite) [2]int { return [2]int{s.Totals.Tests, s.Totals.Failed} }
	var totals [][2]int
	for _, s := range suites {
		totals = append(totals, total(s))
	}
	if want := [][2]int{{9, 5}, {2, 2}, {1, 1}, {1, 0}}; !slices.Equal(totals, want) {
		t.Errorf("tests and failures are %v, want %v", totals, want)
	}
	web := suites[0].Tests[1]
	if web.Name != "Cluster web" || web.Error == nil || !strings.Contains(web.Error.Error(), "envoy/a.yaml:8:7: ") || !strings.Contains(web.SystemOut, "over several lines") {
		t.Errorf("%+v", web)
	}
	if suites, err := junit.Ingest(golden(t, "junit-empty")); err != nil || len(suites) != 1 || total(suites[0]) != [2]int{1, 0} {
		t.Errorf("%+v, %v", suites, err)
	}
}
