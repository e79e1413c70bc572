package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"xdspub/diag"
)

// gitHubKinds maps severities to the workflow commands that make annotations.
var gitHubKinds = map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "notice"}

var (
	gitHubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// writeGitHub writes a workflow command of GitHub Actions for each finding, one on each line. GitHub makes
// annotations of them. GitHub shows ten annotations of each kind in a step. Errors come first.
func writeGitHub(w io.Writer, r *Report) error {
	bw := bufio.NewWriter(w)
	sorted := slices.Clone(r.Findings)
	slices.SortStableFunc(sorted, func(a, b diag.Diagnostic) int { return int(a.Severity) - int(b.Severity) })
	for _, d := range sorted {
		d = words(d)
		fmt.Fprintf(bw, "::%s %s::%s\n", gitHubKinds[d.Severity], strings.Join(r.gitHubProperties(d), ","),
			gitHubText.Replace(r.text(r.Root.placeOutside(d.Position), d)))
	}
	return bw.Flush()
}

func (r *Report) gitHubProperties(d diag.Diagnostic) (list []string) {
	add := func(key, value string) { list = append(list, key+"="+gitHubProperty.Replace(value)) }
	number := func(key string, n int) {
		if n > 0 {
			add(key, fmt.Sprint(n))
		}
	}
	if path, inside := r.Root.Path(d.File); inside {
		add("file", diag.Printable(path))
		number("line", d.Line)
		number("endLine", d.EndLine)
		if d.Line == d.EndLine { // GitHub ignores columns of a range over several lines
			number("col", d.Column)
			number("endColumn", d.EndColumn)
		}
	}
	add("title", d.Code)
	return list
}
