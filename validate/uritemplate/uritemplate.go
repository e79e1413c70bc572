// Package uritemplate reads the path templates of Envoy's URI template matcher and rewriter. The grammar is
// that of Envoy 1.40.0, not of RFC 6570:
//
//	/users/*/files/**          one segment, and the rest of the path
//	/users/{id}/{file=**}      the same with names
//	/v{version}/{name}.json    a name between two literals
//
// Before 1.39, a name must begin its segment. A literal may follow the name in the last segment only.
//
// A template has at most five names. After ** only parts of fixed length may follow.
package uritemplate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	maxNames      = 5
	maxNameLength = 16
)

// Match parses a path_template, and returns its names. If mixed is true, as for Envoy 1.39 and later, a name may
// stand between literals in any segment.
func Match(template string, mixed bool) (names []string, err error) {
	if !strings.HasPrefix(template, "/") {
		return nil, errors.New("it does not begin with a slash")
	}
	for _, b := range []byte(template) {
		if b <= ' ' || b > '~' {
			return nil, fmt.Errorf("it contains %q, which is not allowed", rune(b))
		}
	}
	p := pattern{mixed: mixed}
	for rest := template[1:]; rest != ""; {
		if rest, err = p.segment(rest); err != nil {
			return nil, err
		}
		// Only the last segment may be empty: a template may end with a slash.
		rest = strings.TrimPrefix(rest, "/")
	}
	return p.names, nil
}

// Rewrite parses a path_template_rewrite, and returns the names that it uses.
func Rewrite(template string) (names []string, err error) {
	switch {
	case !strings.HasPrefix(template, "/"):
		return nil, errors.New("it does not begin with a slash")
	case strings.Contains(template, "//"):
		return nil, errors.New("it contains two slashes in a row")
	}
	for rest := template; rest != ""; {
		text, after, open := strings.Cut(rest, "{")
		if text != "" && !isLiteral(strings.ReplaceAll(text, "/", "-")) {
			return nil, fmt.Errorf("it contains %q, which is not allowed", text)
		}
		if !open {
			break
		}
		name, after, closed := strings.Cut(after, "}")
		if !closed {
			return nil, errors.New("a { has no }")
		}
		if !isName(name) {
			return nil, fmt.Errorf("%q is not a valid name", name)
		}
		names, rest = append(names, name), after
	}
	return names, nil
}

// pattern is the state of Match between two parts of a template.
type pattern struct {
	mixed    bool
	names    []string
	afterAll bool // ** precedes: no further part of open length may follow
}

// segment reads a segment up to the next slash outside of braces, and returns the rest.
func (p *pattern) segment(text string) (rest string, err error) {
	if text[0] == '*' {
		return p.glob(text)
	}
	end := strings.IndexByte(text, '/')
	if end < 0 {
		end = len(text)
	}
	open := strings.IndexByte(text[:end], '{')
	if open < 0 || open > 0 && !strings.Contains(text[:end], "}") {
		return text[end:], literal(text[:end])
	}
	// A pattern with slashes is allowed only if the name begins its segment.
	inner, rest, closed := strings.Cut(text[open+1:], "}")
	if !closed || open > 0 && strings.Contains(inner, "/") {
		return "", errors.New("a { has no }")
	}
	if open > 0 && !p.mixed {
		return "", fmt.Errorf("the name in %q does not begin its segment, as Envoy before 1.39 wants it", text[:end])
	}
	if open > 0 {
		if err := literal(text[:open]); err != nil {
			return "", err
		}
	}
	suffix, _, more := strings.Cut(rest, "/")
	if suffix != "" && more && !p.mixed {
		return "", fmt.Errorf("%q follows a name outside of the last segment, which Envoy before 1.39 refuses", suffix)
	}
	if suffix != "" {
		if err := literal(suffix); err != nil {
			return "", err
		}
	}
	return rest[len(suffix):], p.variable(inner)
}

// glob reads * or **, and in the last segment the literal after it.
func (p *pattern) glob(text string) (rest string, err error) {
	rest = strings.TrimPrefix(text[1:], "*")
	if err := p.open(len(text)-len(rest) == 2); err != nil {
		return "", err
	}
	if rest == "" || rest[0] == '/' {
		return rest, nil
	}
	suffix, _, more := strings.Cut(rest, "/")
	if more {
		return "", fmt.Errorf("%q follows a * outside of the last segment", suffix)
	}
	return "", literal(suffix)
}

// variable reads the text in braces: a name, or a name, = and a pattern.
func (p *pattern) variable(text string) error {
	name, match, given := strings.Cut(text, "=")
	switch {
	case !isName(name):
		return fmt.Errorf("%q is not a valid name", name)
	case len(name) > maxNameLength:
		return fmt.Errorf("the name %q is longer than %d characters", name, maxNameLength)
	case slices.Contains(p.names, name):
		return fmt.Errorf("duplicate name %q", name)
	case len(p.names) == maxNames:
		return fmt.Errorf("it has more than %d names", maxNames)
	}
	p.names = append(p.names, name)
	if !given {
		return p.open(false)
	}
	for _, part := range strings.Split(match, "/") {
		err := literal(part)
		if strings.HasPrefix(part, "*") {
			err = p.open(part == "**")
			if strings.Trim(part, "*") != "" || len(part) > 2 {
				err = fmt.Errorf("%q is neither *, ** nor plain text", part)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open records a wildcard or a name. all means that the part is **, after which no such part may follow.
func (p *pattern) open(all bool) error {
	if p.afterAll {
		return errors.New("a wildcard or variable follows **")
	}
	p.afterAll = all
	return nil
}

func literal(text string) error {
	switch {
	case text == "":
		return errors.New("a segment is empty")
	case !isLiteral(text):
		return fmt.Errorf("it contains %q, which is not allowed", text)
	}
	return nil
}

// isLiteral reports whether text consists of characters that RFC 3986 allows in a path segment. It does not check
// percent-encoding.
func isLiteral(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !isLiteralRune(r) })
}

func isLiteralRune(r rune) bool {
	return isLetter(r) || isDigit(r) || strings.ContainsRune("-._~%!$&'()*+,;:@=", r)
}

func isName(text string) bool {
	for i, r := range text {
		if !isLetter(r) && (i == 0 || !isDigit(r) && r != '_') {
			return false
		}
	}
	return text != ""
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
func isDigit(r rune) bool  { return '0' <= r && r <= '9' }
