package diag

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
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
	{regexp.MustCompile(`(?i)(?:hooks\.slack\.com|/api/webhooks)/([^\s"'<>]+)`), []string{"hooks.slack.com/", "/api/webhooks/"}},
	{regexp.MustCompile(`\{SHA\}[A-Za-z0-9+/=]{8,}`), []string{"{sha}"}},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), []string{"eyj"}}, // a JWT
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}|\bAIza[\w-]{30,}|\b[sr]k_live_\w{10,}`),
		[]string{"akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza", "_live_"}},
}

// secretName matches the end of the name of a secret, such as api_token, clientSecret and x-api-key. The name of
// another thing goes on: token_bucket, password-service.
const secretName = `(?:pass(?:words?|wd|phrase)|pwd|secret|token|credentials?|` +
	`(?:api|private|secret|access|account|auth|signing|encryption|hmac|shared)[-_]?key|authorization|cookie)`

// The parts of the expressions of named. The quotes around names and values may be escaped.
const (
	quote = `(\\*["'])?`
	// field matches the end of the name of a field, and what separates its value.
	field = `(?:\\*["'])?[ \t]*[:=][ \t]*`
	// value matches a value: in escaped quotes, in quotes, or to the next blank.
	value = `(?:\\+"([^\n]*?)\\+"|"((?:[^"\\\n]|\\[^\n])*)|'([^'\n]*)|([^\s"'{\[&*|>,…(<\\][^\s"'&]*))`
)

// named match the name of a secret and its value, which is the last group. The first group is the quote behind the
// name, the second is what separates the value.
var named = []*regexp.Regexp{
	// Authorization: Token abc
	regexp.MustCompile(`(?i)(?:authorization|cookie)` + quote + `[ \t]*([:=])[ \t]*([^\s"'{\[&*|>,…(<\\][^\n"'{}]*)`),
	// password: abc
	regexp.MustCompile(`(?i)` + secretName + quote + `[ \t]*(:|=>?)[ \t]*\[?[ \t]*` + value),
	// password {inline_string: abc}
	regexp.MustCompile(`(?i)` + secretName + quote + `[ \t]*([:=]?[ \t]*\{)[ \t]*` +
		`(?:\\*["'])?(?:inline_?string|inline_?bytes|inline|value)` + field + value),
	// key: "x-api-key", value: "abc"
	regexp.MustCompile(`(?i)\bkey` + quote + `[ \t]*([:=])[ \t]*(?:\\*["'])?[\w-]*` + secretName +
		`(?:\\*["'])?[ \t]*,?[ \t]*(?:\\*["'])?(?:raw_?)?value` + field + value),
	// ?sig=abc
	regexp.MustCompile(`(?i)[?&](?:[\w-]*signature|sig|key|code|sas)()(=)([^&\s"'…]+)`),
}

// namedMarks are the marks of named.
var namedMarks = []string{"pass", "pwd", "secret", "token", "credential", "key", "authorization", "cookie", "sig", "code", "sas"}

// lines match a line of a source that must not be shown, although the value of the secret may be in another line.
var lines = []*regexp.Regexp{
	regexp.MustCompile(`(?i)key["']?\s*:\s*["']?[\w-]*` + secretName + `["']?\s*[,}]`),
	regexp.MustCompile(`(?i)\bkind["']?\s*:\s*["']?Secret\b`),
}

// Hide returns text with … instead of each part that looks like a secret.
func Hide(text string) string { return hideAll(text, isProse) }

// hideAll is Hide. A value behind the name of a secret is shown if shown reports true.
func hideAll(text string, shown func(quoted bool, separator, value, rest string) bool) string {
	small := strings.ToLower(text)
	has := func(marks []string) bool {
		return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(small, mark) })
	}
	for _, shape := range values {
		if has(shape.marks) {
			text = hide(shape.Regexp, text, func([]int) bool { return false })
		}
	}
	if !has(namedMarks) {
		return text
	}
	for _, shape := range named {
		text = hide(shape, text, func(m []int) bool {
			from, to := last(m)
			return isNoSecret(text[from:to]) || shown(m[2] < m[3], text[m[4]:m[5]], text[from:to], text[to:])
		})
	}
	return text
}

// last returns the place of the last group that matched; of the whole match without a group.
func last(m []int) (from, to int) {
	for i := len(m) - 2; i >= 0; i -= 2 {
		if m[i] >= 0 {
			return m[i], m[i+1]
		}
	}
	return 0, 0
}

// placeholder is a command of Envoy's format strings.
var placeholder = regexp.MustCompile(`^%[A-Z_]+[(%]`)

// isNoSecret reports whether the value of a field with the name of a secret is no secret: forward_bearer_token: true,
// and a placeholder such as %REQ(cookie)%.
func isNoSecret(value string) bool {
	switch strings.ToLower(strings.TrimRight(value, ",;)]}")) {
	case "true", "false", "null", "nil", "none", "":
		return true
	}
	return placeholder.MatchString(value)
}

// isProse reports whether a value is the beginning of a sentence about the name, as in "Secret: value is required" and
// in `cluster "auth-token": missing`. A password of letters alone looks the same.
func isProse(quoted bool, separator, value, rest string) bool {
	first, more, _ := strings.Cut(value, " ")
	first = strings.TrimRight(first, ".,;:")
	if separator != ":" || !isWord(first) {
		return false
	}
	next, _, _ := strings.Cut(strings.TrimLeft(more+rest, " "), " ")
	next = strings.TrimRight(next, ".,;:)")
	sentence := isWord(next) && next == strings.ToLower(next) && (more != "" || strings.HasPrefix(rest, " "))
	return quoted || sentence || slices.Contains(faults, strings.ToLower(first))
}

// faults are words that stand alone behind the name of a field.
var faults = []string{"empty", "expired", "invalid", "missing", "redacted", "rejected", "required", "unknown", "unset"}

// isWord reports whether a text has only letters, and at least one.
func isWord(text string) bool {
	return text != "" && strings.Trim(text, "'’") != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && r != '\'' && r != '’'
	})
}

// hide returns text with … instead of the last group of each match, unless shown reports true for the match.
func hide(shape *regexp.Regexp, text string, shown func(match []int) bool) string {
	matches := shape.FindAllStringSubmatchIndex(text, -1)
	var b strings.Builder
	end := 0
	for _, m := range matches {
		if shown(m) {
			continue
		}
		from, to := last(m)
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
	for _, shape := range lines {
		if shape.MatchString(line) {
			return true
		}
	}
	return hideAll(line, func(bool, string, string, string) bool { return false }) != line
}

var (
	mapKeys = regexp.MustCompile(`\["(?:[^"\\]|\\.)*"\]`)
	// below matches a field or a key of a path with the name of a secret.
	below = regexp.MustCompile(`(?i)` + secretName + `(?:"\]|[.\[])`)
)

// secretHeader finds a line with nothing but the name of a header whose value is secret.
var secretHeader = regexp.MustCompile(`(?im)\bkey["']?\s*:\s*["']?[\w-]*` + secretName + `["']?\s*$`)

// MayReveal reports whether a text may hold a secret: one of its lines looks like a secret, or the value of a secret
// header may follow on the next line.
func MayReveal(text string) bool {
	if secretHeader.MatchString(text) {
		return true
	}
	for line := range strings.Lines(text) {
		if reveals(line) {
			return true
		}
	}
	return false
}

// Shown returns the finding in the form that leaves the program. Text that looks like a secret is replaced by …,
// and fixes with a secret are removed. Path loses the keys of maps below a field with the name of a secret, and all
// keys if the finding is Sensitive, because a key may be a misplaced secret. Texts are cut to MaxText, because a file
// may quote megabytes. A finding without an end gets its position as its end.
func (d Diagnostic) Shown() Diagnostic {
	if d.EndLine == 0 {
		d.End = PointAt(d.Position).End
	}
	d.Fixes = slices.DeleteFunc(slices.Clone(d.Fixes), Fix.reveals)
	if d.Sensitive {
		d.Path = mapKeys.ReplaceAllLiteralString(d.Path, `["…"]`)
	} else if name := below.FindStringIndex(d.Path); name != nil {
		from := name[1] - 1
		d.Path = d.Path[:from] + mapKeys.ReplaceAllLiteralString(d.Path[from:], `["…"]`)
	}
	d.Path, d.Message, d.Help = Hide(d.Path), Cut(Hide(d.Message), MaxText), Cut(Hide(d.Help), MaxText)
	d.Related = slices.Clone(d.Related)
	for i := range d.Related {
		d.Related[i].Message = Cut(Hide(d.Related[i].Message), MaxText)
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
