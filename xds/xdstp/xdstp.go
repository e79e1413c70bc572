// Package xdstp reads resource names that are URLs, and spells each in one way:
//
//	xdstp://AUTHORITY/TYPE/PATH?KEY=VALUE&KEY=VALUE
//
// Two spellings mean the same resource if only the order of their parameters differs, or if one of them encodes
// characters that need no encoding. The canonical spelling is the spelling by which Envoy 1.40 asks
// (docs/evidence/envoy-behaviour.md); gRPC clients encode more.
//
// A name that does not begin with xdstp: is a plain name, and stays as it is.
//
//	xdstp.Canonical("xdstp://a/envoy.config.listener.v3.Listener/web?b=2&a=%31") // …/web?a=1&b=2
//	xdstp.Canonical("web")                                                        // web
//
// https://github.com/cncf/xds/blob/main/proposals/TP1-xds-transport-next.md
package xdstp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Scheme is the prefix of xdstp names.
const Scheme = "xdstp:"

// Name is the parts of a name, without percent-encoding.
type Name struct {
	Authority string
	// Type is the full name of the resource's message.
	Type string
	// Path is the rest of the path, without the slash before it; may be empty.
	Path string
	// Params are the context parameters, by key.
	Params map[string]string
}

// Is reports whether a name begins with Scheme. Parse may still refuse the name.
func Is(name string) bool { return strings.HasPrefix(name, Scheme) }

// Split returns the authority, the type and the rest of a name as written. The authority may be empty. ok is false
// if the name does not begin with xdstp://, or has no type.
func Split(name string) (authority, typ, rest string, ok bool) {
	after, ok := strings.CutPrefix(name, Scheme+"//")
	if !ok {
		return "", "", "", false
	}
	authority, after, _ = strings.Cut(after, "/")
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		end = len(after)
	}
	return authority, after[:end], after[end:], end > 0 && !strings.ContainsAny(authority, "?#")
}

// Parse returns the parts of a name. The error names the fault, as in "it has no type".
func Parse(name string) (n Name, err error) {
	authority, typ, rest, ok := Split(name)
	switch {
	case !strings.HasPrefix(name, Scheme+"//"):
		return n, errors.New("it does not begin with xdstp://")
	case !ok:
		return n, errors.New("it has no type")
	case strings.Contains(rest, "#"):
		return n, errors.New("it has a fragment: write # as %23")
	}
	path, query, _ := strings.Cut(rest, "?")
	n.Type = typ
	if n.Authority, err = unescape(authority); err != nil {
		return Name{}, err
	}
	if n.Path, err = unescape(strings.TrimPrefix(path, "/")); err != nil {
		return Name{}, err
	}
	if n.Params, err = params(query); err != nil {
		return Name{}, err
	}
	return n, nil
}

// params reads context parameters.
func params(query string) (map[string]string, error) {
	if query == "" {
		return nil, nil
	}
	all := make(map[string]string)
	for param := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(param, "=")
		key, err := unescape(key)
		if err != nil {
			return nil, err
		}
		if value, err = unescape(value); err != nil {
			return nil, err
		}
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("it has the parameter %q twice", key)
		}
		all[key] = value
	}
	return all, nil
}

// The characters that String encodes in each part. In all parts, String also encodes ~ and bytes outside of
// printable ASCII.
const (
	inAuthority = "%/?#"
	inPath      = "%?#[]"
	inParams    = "%#[]&="
)

// String returns the canonical spelling.
func (n Name) String() string {
	var b strings.Builder
	b.WriteString(Scheme + "//")
	escape(&b, n.Authority, inAuthority)
	b.WriteByte('/')
	b.WriteString(n.Type)
	if n.Path != "" {
		b.WriteByte('/')
		escape(&b, n.Path, inPath)
	}
	for i, param := range n.sorted() {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(param)
	}
	return b.String()
}

// sorted returns the spelled parameters in the order of their spelling.
func (n Name) sorted() []string {
	if len(n.Params) == 0 {
		return nil
	}
	all := make([]string, 0, len(n.Params))
	for key, value := range n.Params {
		var b strings.Builder
		escape(&b, key, inParams)
		b.WriteByte('=')
		escape(&b, value, inParams)
		all = append(all, b.String())
	}
	slices.Sort(all)
	return all
}

// Canonical returns the canonical spelling of a name. A plain name, and a name that Parse refuses, stays
// unchanged.
func Canonical(name string) string {
	if !Is(name) {
		return name
	}
	n, err := Parse(name)
	if err != nil {
		return name
	}
	return n.String()
}

// IsCollection reports whether a name in its canonical spelling is that of a collection: its path ends
// with /*.
func IsCollection(name string) bool { return Is(name) && Collection(name) == name }

// Collection returns the collection of a resource with a name in canonical spelling: the last part of the path
// becomes *, the parameters stay. Collection is "" if the name has no path.
func Collection(name string) string {
	_, _, rest, ok := Split(name)
	path, _, _ := strings.Cut(rest, "?")
	last := strings.LastIndexByte(path, '/')
	if !ok || last < 0 {
		return ""
	}
	before := len(name) - len(rest) + last + 1
	return name[:before] + "*" + name[len(name)-len(rest)+len(path):]
}

const hex = "0123456789ABCDEF"

// escape writes text with the characters of a set encoded.
func escape(b *strings.Builder, text, set string) {
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c >= '~' || strings.IndexByte(set, c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
}

// unescape decodes text.
func unescape(text string) (string, error) {
	at := strings.IndexByte(text, '%')
	if at < 0 {
		return text, nil
	}
	var b strings.Builder
	for {
		b.WriteString(text[:at])
		if text = text[at:]; len(text) < 3 || digit(text[1]) < 0 || digit(text[2]) < 0 {
			return "", errors.New("it has a % that two hexadecimal digits do not follow: write % as %25")
		}
		b.WriteByte(byte(digit(text[1])<<4 | digit(text[2])))
		text = text[3:]
		if at = strings.IndexByte(text, '%'); at < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
	}
}

// digit returns the value of a hexadecimal digit, or -1 if c is no such digit.
func digit(c byte) int {
	if 'a' <= c && c <= 'f' {
		c -= 'a' - 'A'
	}
	return strings.IndexByte(hex, c)
}
