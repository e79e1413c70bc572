package report

import (
	"encoding/json"
	"io"

	"xdspub/diag"
)

// codeQuality is a finding in a Code Quality report of GitLab. The format is a part of Code Climate's format:
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
type codeQuality struct {
	Description string           `json:"description"`
	CheckName   string           `json:"check_name"`
	Fingerprint string           `json:"fingerprint"`
	Severity    string           `json:"severity"`
	Location    codeQualityPlace `json:"location"`
}

type codeQualityPlace struct {
	Path  string           `json:"path"`
	Lines codeQualityLines `json:"lines"`
}

type codeQualityLines struct {
	Begin int `json:"begin"`
	End   int `json:"end"`
}

var gitLabSeverities = map[diag.Severity]string{diag.Error: "critical", diag.Warning: "minor", diag.Info: "info"}

// writeGitLab writes a Code Quality report. GitLab needs a path and a line. A finding without them gets the root as
// its path, and the first line.
func writeGitLab(w io.Writer, r *Report) error {
	list := []codeQuality{} // [] and not null if there are no findings
	fingerprints := Fingerprints(r.Findings, r.Root)
	for i, d := range r.Findings {
		d = words(d)
		path, inside := r.Root.Path(d.File)
		if !inside {
			path = "."
		}
		list = append(list, codeQuality{
			Description: r.text(r.Root.placeOutside(d.Position), d),
			CheckName:   d.Code, Fingerprint: fingerprints[i], Severity: gitLabSeverities[d.Severity],
			Location: codeQualityPlace{Path: path, Lines: codeQualityLines{Begin: max(d.Line, 1), End: max(d.EndLine, d.Line, 1)}},
		})
	}
	return writeJSON(w, list)
}

func writeJSON(w io.Writer, x any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(x)
}
