package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"

	"xdspub/diag"
)

// indexes are those of lists in a field path. An element that is put in before moves them.
var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// Fingerprints returns for each finding of a sorted list a text that tells which finding it is:
// the same one in another run, on another machine, and after its lines moved. It is made of the
// code (of a sub-code without the check), the path of the file from the root, the resource, the field and the message, and of
// nothing that Shown hides. Findings of one list that have all these in common are counted, in
// the order of the list: the text ends with ":1", ":2" and so on.
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

// Fingerprint is that of a finding, without the count.
func Fingerprint(d diag.Diagnostic, root *Root) string {
	d = d.Shown()
	path, _ := root.Path(d.File)
	field := indexes.ReplaceAllLiteralString(d.Path, "[]")
	// As JSON, no two lists of texts are one text.
	parts, _ := json.Marshal([]string{diag.CodeOf(d.Code), path, d.Resource.Type, d.Resource.Name, field, d.Message}) // texts can always be encoded
	sum := sha256.Sum256(parts)
	return hex.EncodeToString(sum[:16])
}
