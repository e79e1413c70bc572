package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Summary counts a run: findings by severity, files read, resources found.
type Summary struct {
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
	Files     int `json:"files"`
	Resources int `json:"resources"`
	// Hidden counts findings outside the paths or the change that the caller named.
	Hidden Hidden `json:"hidden,omitzero"`
	// Baseline counts findings that a baseline lists.
	Baseline Hidden `json:"baseline,omitzero"`
}

// Hidden counts findings that are not shown, by severity.
type Hidden struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
}

// Add counts the findings that shown lacks and all has.
func (h *Hidden) Add(all, shown List) {
	h.Errors += all.Count(Error) - shown.Count(Error)
	h.Warnings += all.Count(Warning) - shown.Count(Warning)
}

// AddCounts adds the counts of another Hidden.
func (h *Hidden) AddCounts(other Hidden) {
	h.Errors += other.Errors
	h.Warnings += other.Warnings
}

// String returns the count in a few words: 1 error, 2 warnings.
func (h Hidden) String() string {
	return fmt.Sprintf("%s, %s", Count(h.Errors, "error"), Count(h.Warnings, "warning"))
}

// String returns the summary in a few words: 1 error, 2 warnings in 30 resources of 4 files.
func (s Summary) String() string {
	return fmt.Sprintf("%s, %s in %s of %s", Count(s.Errors, "error"), Count(s.Warnings, "warning"), Count(s.Resources, "resource"), Count(s.Files, "file"))
}

// CountFindings counts errors and warnings, and leaves out the kind that is absent: 2 errors, 1 warning.
func CountFindings(errors, warnings int) string {
	switch {
	case warnings == 0:
		return Count(errors, "error")
	case errors == 0:
		return Count(warnings, "warning")
	}
	return Count(errors, "error") + ", " + Count(warnings, "warning")
}

// Count returns a number with its noun: 1 file, 2 files.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Few returns at most that many of the names, in one text, and how many more there are: "a, b and
// 3 more".
func Few(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// WriteJSON prints {"diagnostics": […], "summary": {…}}, indented.
func WriteJSON(w io.Writer, l List, s Summary) error {
	out := struct {
		Diagnostics List    `json:"diagnostics"`
		Summary     Summary `json:"summary"`
	}{append(List{}, l...), s}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
