package diag

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A header, an address or a file may contain a password in a field that is not marked as a secret. Text that looks
// like a secret is not shown. The expressions below know common forms only: a token that looks like a plain word is
// shown.

// shape is an expression for a form of secrets. If the expression has a group, only the group is secret.
type shape struct {
	*regexp.Regexp
	// marks are texts in lower case, at least one of which is in each match. The slow expression is tried only for
	// texts with a mark.
	marks []string
}

// values are the forms of secrets.
var values = []shape{
	{regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY-----|(?s:.*))`), []string{"-----begin "}},
	{regexp.MustCompile(`(?i)\b(?:basic|bearer|digest|negotiate|apikey)\s+([A-Za-z0-9+/=._~:-]{6,})`),
		[]string{"basic", "bearer", "digest", "negotiate", "apikey"}},
	{regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*:([^\s/@"']+)@`), []string{"://"}},
	{regexp.MustCompile(`\$(?:1|2[abxy]?|5|6|7|y|gy|argon2[a-z]*|scrypt|pbkdf2[a-z0-9-]*|apr1)\$[./A-Za-z0-9$=,+-]{4,}`), []string{"$"}},
	{regexp.MustCompile(`\{SHA\}[A-Za-z0-9+/=]{8,}`), []string{"{sha}"}},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), []string{"eyj"}}, // a JWT
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}|\bAIza[\w-]{30,}|\b[sr]k_live_\w{10,}`),
		[]string{"akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza", "_live_"}},
}

// names match the name of a secret followed by its value.
var names = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:password|passwd|passphrase|api[-_]?key|private[-_]?key|secret[-_]?key|access[-_]?key|client[-_]?secret|auth[-_]?token|access[-_]?token|refresh[-_]?token|security[-_]?token|authorization|set-cookie|cookie)["']?\s*[:=]\s*["']?[^\s"'{\[&*|>,}]`),
	regexp.MustCompile(`(?i)key["']?\s*:\s*["']?(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api-key|apikey|x-auth-token|x-access-token|x-amz-security-token|x-csrf-token)["']?\s*[,}]`),
	regexp.MustCompile(`(?i)\bkind["']?\s*:\s*["']?Secret\b`),
}

// Hide returns text with … instead of each part that looks like a secret.
func Hide(text string) string {
	small := strings.ToLower(text)
	for _, shape := range values {
		if slices.ContainsFunc(shape.marks, func(mark string) bool { return strings.Contains(small, mark) }) {
			text = hide(shape.Regexp, text)
		}
	}
	return text
}

func hide(shape *regexp.Regexp, text string) string {
	matches := shape.FindAllStringSubmatchIndex(text, -1)
	if matches == nil {
		return text
	}
	var b strings.Builder
	end := 0
	for _, m := range matches {
		from, to := m[0], m[1]
		if len(m) > 2 {
			from, to = m[2], m[3]
		}
		b.WriteString(text[end:from])
		b.WriteString("…")
		end = to
	}
	b.WriteString(text[end:])
	return b.String()
}

// longestLine is the length, in bytes, of the longest line that is searched for secrets. A longer line is not shown
// at all.
const longestLine = 64 << 10

// reveals reports whether a line of a source must not be shown: it contains text that looks like a secret, or a
// name of a secret with a value, or it is too long.
func reveals(line string) bool {
	if len(line) > longestLine {
		return true
	}
	for _, shape := range names {
		if shape.MatchString(line) {
			return true
		}
	}
	return Hide(line) != line
}

var mapKeys = regexp.MustCompile(`\["(?:[^"\\]|\\.)*"\]`)

// Shown returns the finding in the form that leaves the program. Text that looks like a secret is replaced by …,
// and fixes with a secret are removed. If the finding is Sensitive, the keys of maps in Path are removed, because a
// key may be a misplaced secret. A finding without an end gets its position as its end.
func (d Diagnostic) Shown() Diagnostic {
	if d.EndLine == 0 {
		d.End = PointAt(d.Position).End
	}
	d.Fixes = slices.DeleteFunc(slices.Clone(d.Fixes), Fix.reveals)
	if d.Sensitive {
		d.Path = mapKeys.ReplaceAllLiteralString(d.Path, `["…"]`)
	}
	d.Path, d.Message, d.Help = Hide(d.Path), Hide(d.Message), Hide(d.Help)
	d.Related = slices.Clone(d.Related)
	for i := range d.Related {
		d.Related[i].Message = Hide(d.Related[i].Message)
	}
	return d
}

// MarshalJSON encodes the finding as Shown returns it. Every key is present and no list is null, so that readers
// need no special cases.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	type plain Diagnostic
	d = d.Shown()
	if d.Related == nil {
		d.Related = []Related{}
	}
	if d.Fixes == nil {
		d.Fixes = []Fix{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the caller decides whether to escape HTML
	err := enc.Encode(plain(d))
	return b.Bytes(), err
}
