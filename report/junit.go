package report

import (
	"encoding/xml"
	"io"
	"strings"

	"xdspub/diag"
)

// The elements of a JUnit report, in the form that Jenkins, GitLab and others read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Cases    []*junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
		Out     string        `xml:"system-out,omitempty"`

		failing, others diag.List
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a testsuite for each tree. A testcase is a resource, or a file with findings about no resource.
// A testcase with an error fails; so does a testcase with a warning, if warnings refuse the tree. All of its errors
// are in one failure element, because readers take only the first. Other findings are the output of the testcase.
func writeJUnit(w io.Writer, r *Report) error {
	all := junitSuites{Name: "xdspub validate"}
	for _, tree := range r.Trees {
		s := r.junitSuite(tree)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r *Report) junitSuite(tree Tree) junitSuite {
	path, _ := r.Root.Path(tree.Path)
	s := junitSuite{Name: diag.Printable(path)}
	cases := make(map[string]*junitCase)
	find := func(name string) *junitCase {
		c := cases[name]
		if c == nil {
			c = &junitCase{Class: s.Name, Name: name}
			cases[name] = c
			s.Cases = append(s.Cases, c)
		}
		return c
	}
	if tree.Resources != nil {
		for _, resource := range tree.Resources() {
			find(junitName(name(resource)))
		}
	}
	for _, d := range tree.Findings {
		d = words(d)
		c := find(r.junitCaseOf(d, s.Name))
		if path, inside := r.Root.Path(d.File); inside && c.File == "" {
			c.File = diag.Printable(path)
		}
		if d.Severity == diag.Error || d.Severity == diag.Warning && tree.WarningsAsErrors {
			c.failing = append(c.failing, d)
		} else {
			c.others = append(c.others, d)
		}
	}
	if len(s.Cases) == 0 {
		find(s.Name) // readers treat a suite without testcases as a failed run
	}
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		c.Out = r.junitText(c.others)
		if len(c.failing) > 0 {
			s.Failures++
			c.Failure = &junitFailure{Message: junitMessage(c.failing), Type: c.failing[0].Code, Text: r.junitText(c.failing)}
		}
	}
	return s
}

// junitCaseOf returns the name of the testcase that a finding belongs to.
func (r *Report) junitCaseOf(d diag.Diagnostic, tree string) string {
	switch path, _ := r.Root.Path(d.File); {
	case d.Resource.Name != "":
		return junitName(d.Resource)
	case path != "":
		return diag.Printable(path)
	default:
		return tree
	}
}

// junitName returns the name of a resource with the last word of its type, such as: Cluster web.
func junitName(r diag.Resource) string {
	return strings.TrimSpace(r.Type[strings.LastIndexByte(r.Type, '.')+1:] + " " + r.Name)
}

// junitMessage returns the line that readers show in a list of failures.
func junitMessage(failing diag.List) string {
	if len(failing) == 1 {
		return failing[0].Message
	}
	return diag.Count(len(failing), "finding") + ", the first: " + failing[0].Message
}

func (r *Report) junitText(list diag.List) string {
	var b strings.Builder
	for _, d := range list {
		first, more, _ := strings.Cut(r.text(r.Root.place(d.Position), d), "\n")
		b.WriteString(d.Severity.String() + ": " + first + " [" + d.Code + "]\n")
		for line := range strings.Lines(more) {
			b.WriteString("    " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}
