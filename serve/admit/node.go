package admit

import (
	"crypto/x509"
	"errors"
	"strings"
)

// NodeRule permits a node id to clients whose certificate has a name. The node id and the name are patterns
// with at most one * or ** each, which match any text except the empty text. If the two patterns have a *,
// the two * match the same text. So a rule for many nodes lets no node pose as another node.
type NodeRule struct{ node, san pattern }

// ParseNodeRule parses a NodeRule, written as ID=SAN.
func ParseNodeRule(text string) (NodeRule, error) {
	node, san, ok := strings.Cut(text, "=")
	if !ok || node == "" || san == "" {
		return NodeRule{}, errors.New("write ID=SAN, such as edge-*=spiffe://example.org/edge-*")
	}
	var r NodeRule
	for _, p := range []struct {
		text string
		to   *pattern
	}{{node, &r.node}, {san, &r.san}} {
		if *p.to, ok = parsePattern(p.text); !ok {
			return NodeRule{}, errors.New("write one * or one ** in each pattern at most")
		}
	}
	return r, nil
}

// allows reports whether the rule permits a node id to a client whose certificate has a name.
func (r NodeRule) allows(id, name string) bool {
	node, ok := r.node.match(id)
	if !ok {
		return false
	}
	san, ok := r.san.match(name)
	return ok && (r.node.wildcard != "*" || r.san.wildcard != "*" || node == san)
}

// NamePattern is a pattern for names in certificates, with at most one * or **. Both match any text except
// the empty text.
type NamePattern struct{ pattern }

// ParseNamePattern parses a NamePattern.
func ParseNamePattern(text string) (NamePattern, error) {
	p, ok := parsePattern(text)
	if !ok || text == "" {
		return NamePattern{}, errors.New("write a name with one * at most, such as spiffe://example.org/ops/*")
	}
	return NamePattern{p}, nil
}

// pattern is a text with at most one wildcard: *, ** or "".
type pattern struct{ before, wildcard, after string }

func parsePattern(text string) (pattern, bool) {
	for _, wildcard := range []string{"**", "*"} {
		if before, after, ok := strings.Cut(text, wildcard); ok {
			return pattern{before, wildcard, after}, !strings.Contains(before+after, "*")
		}
	}
	return pattern{before: text}, true
}

// match reports whether a text matches, and returns the part of the text that the wildcard matches; ""
// without a wildcard. A wildcard doesn't match the empty text.
func (p pattern) match(text string) (string, bool) {
	if p.wildcard == "" {
		return "", text == p.before
	}
	rest, ok := strings.CutPrefix(text, p.before)
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, p.after)
	return rest, ok && rest != ""
}

// names returns the subject alternative names of a certificate, without its common name.
func names(c *x509.Certificate) []string {
	var list []string
	list = append(list, c.DNSNames...)
	list = append(list, c.EmailAddresses...)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	for _, uri := range c.URIs {
		list = append(list, uri.String())
	}
	return list
}
