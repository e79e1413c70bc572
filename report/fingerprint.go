package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"

	"xdspub/diag"
)

// indexes matches the indexes of lists in a field path. If an element is inserted, the indexes of all later
// elements change.
var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// Fingerprints returns a text for each finding of a sorted list. The text identifies the finding in another run, on
// another machine, and after its lines have moved. It depends on the code without the check, the path of the file
// from the root, the resource, the field and the message, as Shown shows them. Findings with equal fingerprints get
// a suffix in the order of the list: ":1", ":2" and so on.
func Fingerprints(l diag.List, root *Root) []string {
	all := make([]string, len(l))
	seen := make(map[string]int)
	for i, d := range l {
		f := Fingerprint(d, root)
		seen[f]++
		all[i] = fmt.Sprintf("%s:%d", f, seen[f])
	}
	return all
}

// Fingerprint returns the fingerprint of a finding without a suffix.
func Fingerprint(d diag.Diagnostic, root *Root) string {
	d = d.Shown()
	path, _ := root.Path(d.File)
	field := indexes.ReplaceAllLiteralString(d.Path, "[]")
	// In JSON, different lists of texts never give the same text.
	parts, _ := json.Marshal([]string{diag.CodeOf(d.Code), path, d.Resource.Type, d.Resource.Name, field, d.Message}) // texts can always be encoded
	sum := sha256.Sum256(parts)
	return hex.EncodeToString(sum[:16])
}
