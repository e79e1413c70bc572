package boring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CipherSuite is a cipher suite of TLS 1.2 or older. Envoy does not let users choose suites of TLS 1.3.
type CipherSuite struct {
	// Name is OpenSSL's name of the suite, Standard the name in the RFCs.
	Name, Standard string
	// Aliases are the names of groups of suites that include the suite.
	Aliases []string
	// Deprecated means that no alias except 3DES adds the suite to a list. The suite's own name adds it.
	Deprecated bool
}

// CheckCiphers checks a list of cipher suites in OpenSSL's language. known are the suites of BoringSSL.
// CheckCiphers returns the first fault, and the unknown name if the fault is an unknown name. An empty list selects
// the default suites.
func CheckCiphers(list string, known []CipherSuite) (name string, err error) {
	if list == "" {
		return "", nil
	}
	s := cipherList{known: known, rest: list, active: make(map[string]bool), killed: make(map[string]bool)}
	if err := s.run(); err != nil {
		return s.name, err
	}
	if len(s.active) == 0 {
		return "", errors.New("the list selects no cipher suite")
	}
	return "", nil
}

// cipherList is the state of the evaluation of a list.
type cipherList struct {
	known          []CipherSuite
	rest, name     string
	active, killed map[string]bool
}

func (s *cipherList) run() error {
	if rest, ok := strings.CutPrefix(s.rest, "DEFAULT"); ok {
		s.apply('a', []string{"ALL"})
		s.rest = strings.TrimPrefix(rest, ":")
	}
	inGroup, hasGroup := false, false
	for s.rest != "" {
		operator := byte('a') // a name without an operator adds suites
		c := s.rest[0]
		switch {
		case inGroup && c == ']':
			inGroup = false
			s.rest = s.rest[1:]
			continue
		case inGroup && c == '|', !inGroup && c == ':':
			s.rest = s.rest[1:]
			continue
		case inGroup && !isAlphanumeric(c):
			return fmt.Errorf("%q is not allowed in a group in brackets", c)
		case c == '[':
			inGroup, hasGroup = true, true
			s.rest = s.rest[1:]
			continue
		case strings.IndexByte("-+!@", c) >= 0 && hasGroup:
			return fmt.Errorf("%q is not allowed after a group in brackets", c)
		case strings.IndexByte("-+!@", c) >= 0:
			operator = c
			s.rest = s.rest[1:]
		}
		if err := s.rule(operator); err != nil {
			return err
		}
	}
	if inGroup {
		return errors.New("a group has no closing bracket")
	}
	return nil
}

// rule evaluates one operator and the names after it.
func (s *cipherList) rule(operator byte) error {
	var names []string
	for {
		end := strings.IndexFunc(s.rest, func(r rune) bool { return r > 0x7f || !isAlphanumeric(byte(r)) && !strings.ContainsRune("-._", r) })
		if end < 0 {
			end = len(s.rest)
		}
		if end == 0 {
			return fmt.Errorf("a name is missing at %q", s.rest)
		}
		names, s.rest = append(names, s.rest[:end]), s.rest[end:]
		if operator == '@' || !strings.HasPrefix(s.rest, "+") {
			break
		}
		s.rest = s.rest[1:]
	}
	if operator == '@' {
		if names[0] != "STRENGTH" {
			return fmt.Errorf("unknown command %q", "@"+names[0])
		}
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.known, func(c CipherSuite) bool {
			return len(names) == 1 && c.isNamed(name) || slices.Contains(c.Aliases, name)
		}) {
			s.name = name
			return fmt.Errorf("unknown name %q", name)
		}
	}
	s.apply(operator, names)
	return nil
}

// apply applies an operator to the suites that have all of the names.
func (s *cipherList) apply(operator byte, names []string) {
	exact := slices.ContainsFunc(s.known, func(c CipherSuite) bool { return len(names) == 1 && c.isNamed(names[0]) })
	for _, c := range s.known {
		switch {
		case exact && !c.isNamed(names[0]):
			continue
		case exact:
		case operator == 'a' && c.Deprecated && !slices.Contains(names, "3DES"), !c.hasAliases(names):
			continue
		}
		switch operator {
		case 'a':
			if !s.killed[c.Name] {
				s.active[c.Name] = true
			}
		case '-':
			delete(s.active, c.Name)
		case '!':
			delete(s.active, c.Name)
			s.killed[c.Name] = true
		}
	}
}

func (c CipherSuite) isNamed(name string) bool { return c.Name == name || c.Standard == name }

func (c CipherSuite) hasAliases(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(c.Aliases, name) })
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
