package diag

import (
	"encoding/json"
	"io"
)

// Summary counts a run: findings by severity, files read, resources found.
type Summary struct {
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
	Files     int `json:"files"`
	Resources int `json:"resources"`
}

// WriteJSON prints {"diagnostics": […], "summary": {…}}, indented, with every
// key present in every finding, so that a reader needs no special cases.
func WriteJSON(w io.Writer, l List, s Summary) error {
	out := struct {
		Diagnostics List    `json:"diagnostics"`
		Summary     Summary `json:"summary"`
	}{make(List, len(l)), s}
	for i, d := range l {
		if d.Related == nil {
			d.Related = []Related{}
		}
		out.Diagnostics[i] = d
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
