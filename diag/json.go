package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Summary has the numbers of a run: findings by severity, files that were read, and resources.
type Summary struct {
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
	Files     int `json:"files"`
	Resources int `json:"resources"`
	// Hidden counts the findings that are not shown, because they do not concern the paths or the change that the
	// user named.
	Hidden Hidden `json:"hidden,omitzero"`
	// Baseline counts the findings that are not shown, because a baseline lists them.
	Baseline Hidden `json:"baseline,omitzero"`
	// Fixed is the number of fixes that were made.
	Fixed int `json:"fixed,omitzero"`
}

// Hidden has numbers of findings that are not shown, by severity.
type Hidden struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
}

// Add adds the numbers of findings that all has more than shown, by severity.
func (h *Hidden) Add(all, shown List) {
	h.Errors += all.Count(Error) - shown.Count(Error)
	h.Warnings += all.Count(Warning) - shown.Count(Warning)
}

// AddCounts adds the counts of another Hidden.
func (h *Hidden) AddCounts(other Hidden) {
	h.Errors += other.Errors
	h.Warnings += other.Warnings
}

// String returns the numbers in words, such as: 1 error, 2 warnings.
func (h Hidden) String() string {
	return fmt.Sprintf("%s, %s", Count(h.Errors, "error"), Count(h.Warnings, "warning"))
}

// String returns the summary in words, such as: 1 error, 2 warnings in 30 resources of 4 files.
func (s Summary) String() string {
	return fmt.Sprintf("%s, %s in %s of %s", Count(s.Errors, "error"), Count(s.Warnings, "warning"), Count(s.Resources, "resource"), Count(s.Files, "file"))
}

// CountFindings returns the numbers of errors and warnings in words, such as: 2 errors, 1 warning. It leaves out a
// number that is 0. Without any findings, it returns: 0 errors.
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

// Few returns at most most of the names as one text. It adds the number of the other names: a, b and 3 more.
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
