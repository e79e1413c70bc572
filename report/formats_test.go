package report_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"xdspub/diag"
	"xdspub/report"
	"xdspub/tools/golden"
)

const (
	secret    = "hunter2hunter2"
	clusterOf = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
)

func at(file string, line, column int) diag.Position {
	return diag.Position{File: file, Line: line, Column: column}
}

func edit(file string, line, column, end int, text string) diag.Edit {
	return diag.Edit{Range: diag.Range{Position: at(file, line, column), End: diag.End{EndLine: line, EndColumn: end}}, Text: text}
}

// hostile are findings that try to break a report. The root is /repository.
var hostile = diag.List{
	{Code: "of-the-tree", Message: "of no file"},
	{Code: "outside", Position: at("/etc/envoy/a b.yaml", 3, 4), Message: "outside of the root"},
	{Code: "stdin", Severity: diag.Warning, Position: at(diag.StandardInput, 7, 8), Message: "in standard input", Related: []diag.Related{{Position: at(diag.StandardInput, 1, 1), Message: "the first one"}}},
	{Code: "unknown-field", Position: at("/repository/envoy/a.yaml", 2, 7), End: diag.End{EndLine: 2, EndColumn: 17}, Resource: diag.Resource{Type: clusterOf, Name: "web"}, Path: "hosts[3].nmae",
		Message: `unknown field "nmae"`, Help: `did you mean "name"?`,
		Fixes: []diag.Fix{
			{Title: "write name", Edits: []diag.Edit{edit("/repository/envoy/a.yaml", 2, 7, 17, "name"), edit("/repository/envoy/b.yaml", 5, 1, 1, "- x\n"), edit("/repository/envoy/a.yaml", 9, 1, 4, "")}},
			{Title: "in no file", Edits: []diag.Edit{edit(diag.StandardInput, 1, 1, 2, "x")}},
			{Title: "nothing"},
			{Title: "a secret", Edits: []diag.Edit{edit("/repository/envoy/a.yaml", 2, 7, 17, "Bearer "+secret)}},
		},
		Related: []diag.Related{
			{Position: at("/repository/envoy/b.yaml", 3, 4), Message: "there"}, {Position: at("/repository/envoy/b.yaml", 3, 4), Message: "there"},
			{Position: at("/repository/envoy/b.yaml", 0, 0), Message: "a whole file"}, {Message: "nowhere, with Bearer " + secret},
		}},
	{Code: "unknown-field", Position: at("/repository/envoy/a.yaml", 8, 7), Resource: diag.Resource{Type: clusterOf, Name: "web"}, Path: "hosts[4].nmae", Message: `unknown field "nmae"`},
	{Code: "many-lines", Severity: diag.Warning, Position: at("/repository/envoy/a.yaml", 3, 1), End: diag.End{EndLine: 9, EndColumn: 2}, Resource: diag.Resource{Type: clusterOf, Name: "web"}, Message: "over several lines"},
	{Code: "remark/no-columns", Severity: diag.Info, Position: at("/repository/envoy/a.yaml", 9, 0), Message: "a line without columns"},
	{Code: "file", Severity: diag.Warning, Position: at("/repository/envoy/c.pb", 0, 0), Resource: diag.Resource{Type: clusterOf, Name: "binary"}, Path: "name", Message: "a file without lines"},
	{Code: "inject,title=x::y", Position: at("/repository/envoy/50%,a:b\n::error::.yaml", 1, 1), Resource: diag.Resource{Type: clusterOf, Name: "</testcase>&\x00\"]]>"},
		Message: "100% of\r\n::error::<b>&amp;]]>\x1b[31m\u202e\x00\xff", Help: "%0A::set-output name=x::y\n</failure>"},
	{Code: "space", Position: at("/repository/größe/大 #1?.yaml", 1, 1), Message: "in a path that has to be encoded"},
	{Code: "colon", Position: at("/repository/c:d.yaml", 1, 1), Message: "in a path that looks like a URI"},
	{Code: "secret", Position: at("/repository/envoy/key.yaml", 1, 1), Sensitive: true, Resource: diag.Resource{Type: clusterOf, Name: "keys"}, Path: `metadata["` + secret + `"]`, Message: "a URL http://me:" + secret + "@host"},
}

var codes = []diag.Code{
	{Name: "unknown-field", Doc: "A message has no field of this name.\n\nEnvoy rejects <it> & all\nof the file.\n\nA second paragraph."},
	{Name: "many-lines", Severity: diag.Warning, Doc: "Only a summary."},
	{Name: "remark", Severity: diag.Info, Doc: "A long one.\n\n" + strings.Repeat("Words and words.\n", 70), Checks: []diag.Check{{Name: "no-columns", Summary: "A line without columns."}}},
	{Name: "never-found", Doc: "It has no finding."},
}

func hostileReport(t *testing.T) *report.Report {
	root, err := report.NewRoot("/repository")
	if err != nil {
		t.Fatal(err)
	}
	return &report.Report{
		Version: "v1.2.3", Codes: codes, Root: root, ExitStatus: 1, Findings: hostile,
		Trees: []report.Tree{
			{Path: "/repository/envoy", Findings: hostile[2:], Resources: func() []diag.Resource {
				return []diag.Resource{{Type: clusterOf, Name: "fine"}, {Type: clusterOf, Name: "web"}}
			}},
			{Path: "/etc/envoy", Findings: hostile[:2]},
			{Path: "/repository/strict", Findings: hostile[7:8], WarningsAsErrors: true},
			{Path: "/repository/empty.json"},
		},
	}
}

// written returns what a format writes for the hostile findings, and for no findings.
func written(t *testing.T, format string) (hostile, empty string) {
	t.Helper()
	for _, f := range report.Formats {
		if f.Name != format {
			continue
		}
		r := hostileReport(t)
		var b, e strings.Builder
		if err := f.Write(&b, r); err != nil {
			t.Fatal(err)
		}
		r.Findings, r.Trees, r.ExitStatus = nil, r.Trees[3:], 0
		if err := f.Write(&e, r); err != nil {
			t.Fatal(err)
		}
		return b.String(), e.String()
	}
	t.Fatalf("there is no format %s", format)
	return "", ""
}

// TestGolden compares the reports of the hostile findings with the golden files. A report contains no secret, and
// no character that a terminal would obey. tools/schemas checks the golden files against the schemas of SARIF and
// JUnit.
func TestGolden(t *testing.T) {
	for _, f := range report.Formats {
		hostile, empty := written(t, f.Name)
		if strings.Contains(hostile, secret) {
			t.Errorf("%s: a secret is printed", f.Name)
		}
		if i := strings.IndexFunc(hostile, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }); i >= 0 {
			t.Errorf("%s: a control character is printed: %q", f.Name, hostile[i:])
		}
		golden.Compare(t, f.Name+".golden", hostile)
		golden.Compare(t, f.Name+"-empty.golden", empty)
	}
}

// TestGitHub: each line has one command, and no text of a finding adds a command.
func TestGitHub(t *testing.T) {
	text, empty := written(t, "github")
	if empty != "" {
		t.Errorf("without findings: %q", empty)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(hostile) {
		t.Errorf("%d lines of %d findings", len(lines), len(hostile))
	}
	severity := 0
	for _, line := range lines {
		kind, _, _ := strings.Cut(strings.TrimPrefix(line, "::"), " ")
		is := strings.Index("error warning notice", kind)
		if !strings.HasPrefix(line, "::") || is < severity {
			t.Errorf("%q is no command, or behind less severe ones", line)
		}
		severity = is
		// The runner reads properties up to the next :: in the line.
		properties, _, _ := strings.Cut(line[len("::"+kind+" "):], "::")
		for property := range strings.SplitSeq(properties, ",") {
			key, value, _ := strings.Cut(property, "=")
			if _, err := strconv.Atoi(value); err != nil && key != "file" && key != "title" {
				t.Errorf("%q has the property %q", line, property)
			}
		}
	}
}

// TestGitLab: each issue has the fields that GitLab's schema requires, a known severity, and its own fingerprint.
func TestGitLab(t *testing.T) {
	text, empty := written(t, "gitlab")
	if empty != "[]\n" {
		t.Errorf("without findings: %s", empty)
	}
	var issues []struct {
		Description, Fingerprint, Severity string
		CheckName                          string `json:"check_name"`
		Location                           struct {
			Path  string
			Lines struct{ Begin, End int }
		}
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&issues); err != nil || len(issues) != len(hostile) {
		t.Fatal(len(issues), err)
	}
	seen := make(map[string]bool)
	for _, i := range issues {
		if i.Description == "" || i.CheckName == "" || i.Location.Path == "" || i.Location.Lines.Begin < 1 || i.Location.Lines.End < i.Location.Lines.Begin || seen[i.Fingerprint] {
			t.Errorf("%+v", i)
		}
		if !strings.Contains("info minor major critical blocker", i.Severity) {
			t.Errorf("severity %s", i.Severity)
		}
		seen[i.Fingerprint] = true
	}
}

// full is a writer that always fails.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	for _, f := range report.Formats {
		if err := f.Write(full{}, hostileReport(t)); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}
