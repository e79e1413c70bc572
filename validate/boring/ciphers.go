package boring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// cipherSuite is one of TLS 1.2 and before; those of TLS 1.3 can't be chosen.
type cipherSuite struct {
	// name is OpenSSL's, standard the one of the RFCs.
	name, standard string
	// aliases are the names of several that stand for this one too.
	aliases []string
	// deprecated ones are chosen by their own name, or as 3DES.
	deprecated bool
}

func suite(name, standard, aliases string) cipherSuite {
	return cipherSuite{name: name, standard: standard, aliases: append(strings.Fields(aliases), "ALL", "FIPS", "HIGH")}
}

func deprecated(c cipherSuite) cipherSuite {
	c.deprecated = true
	return c
}

const (
	kECDSA = "ECDH ECDHE ECDSA EECDH aECDSA kECDHE kEECDH "
	kECRSA = "ECDH ECDHE EECDH aRSA kECDHE kEECDH "
	kECPSK = "ECDH ECDHE EECDH aPSK kECDHE kEECDH "
	kRSA   = "RSA aRSA kRSA "
	kPSK   = "PSK aPSK kPSK "
	cbcSHA = " SHA SHA1 SSLv3 TLSv1"
)

var cipherSuites = []cipherSuite{
	suite("AES128-GCM-SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256", kRSA+"AES AES128 AESGCM TLSv1.2"),
	suite("AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA", kRSA+"AES AES128"+cbcSHA),
	suite("AES256-GCM-SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384", kRSA+"AES AES256 AESGCM TLSv1.2"),
	suite("AES256-SHA", "TLS_RSA_WITH_AES_256_CBC_SHA", kRSA+"AES AES256"+cbcSHA),
	deprecated(suite("DES-CBC3-SHA", "TLS_RSA_WITH_3DES_EDE_CBC_SHA", kRSA+"3DES"+cbcSHA)),
	suite("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", kECDSA+"AES AES128 AESGCM TLSv1.2"),
	suite("ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", kECDSA+"AES AES128"+cbcSHA),
	deprecated(suite("ECDHE-ECDSA-AES128-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", kECDSA+"AES AES128 TLSv1.2")),
	suite("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", kECDSA+"AES AES256 AESGCM TLSv1.2"),
	suite("ECDHE-ECDSA-AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", kECDSA+"AES AES256"+cbcSHA),
	suite("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", kECDSA+"CHACHA20 TLSv1.2"),
	suite("ECDHE-PSK-AES128-CBC-SHA", "TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA", kECPSK+"AES AES128"+cbcSHA),
	suite("ECDHE-PSK-AES256-CBC-SHA", "TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA", kECPSK+"AES AES256"+cbcSHA),
	suite("ECDHE-PSK-CHACHA20-POLY1305", "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256", kECPSK+"CHACHA20 TLSv1.2"),
	suite("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", kECRSA+"AES AES128 AESGCM TLSv1.2"),
	suite("ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", kECRSA+"AES AES128"+cbcSHA),
	deprecated(suite("ECDHE-RSA-AES128-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", kECRSA+"AES AES128 TLSv1.2")),
	suite("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", kECRSA+"AES AES256 AESGCM TLSv1.2"),
	suite("ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", kECRSA+"AES AES256"+cbcSHA),
	suite("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", kECRSA+"CHACHA20 TLSv1.2"),
	suite("PSK-AES128-CBC-SHA", "TLS_PSK_WITH_AES_128_CBC_SHA", kPSK+"AES AES128"+cbcSHA),
	suite("PSK-AES256-CBC-SHA", "TLS_PSK_WITH_AES_256_CBC_SHA", kPSK+"AES AES256"+cbcSHA),
}

// Ciphers are the names of all cipher suites that can be chosen.
func Ciphers() (names []string) {
	for _, c := range cipherSuites {
		names = append(names, c.name)
	}
	return names
}

// CheckCiphers says what is wrong with a list of cipher suites in OpenSSL's
// language, and with which name where it is one.
func CheckCiphers(list string) (name string, err error) {
	if list == "" {
		return "", nil // the default
	}
	s := cipherList{rest: list, active: make(map[string]bool), killed: make(map[string]bool)}
	if err := s.run(); err != nil {
		return s.name, err
	}
	if len(s.active) == 0 {
		return "", errors.New("no cipher suite is left")
	}
	return "", nil
}

// cipherList carries a list out.
type cipherList struct {
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
		operator := byte('a') // add
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
			return fmt.Errorf("%q has no place in a group in brackets", c)
		case c == '[':
			inGroup, hasGroup = true, true
			s.rest = s.rest[1:]
			continue
		case strings.IndexByte("-+!@", c) >= 0 && hasGroup:
			return fmt.Errorf("%q has no place behind a group in brackets", c)
		case strings.IndexByte("-+!@", c) >= 0:
			operator = c
			s.rest = s.rest[1:]
		}
		if err := s.rule(operator); err != nil {
			return err
		}
	}
	if inGroup {
		return errors.New("a group in brackets has no end")
	}
	return nil
}

// rule carries out one operator and the names behind it.
func (s *cipherList) rule(operator byte) error {
	var names []string
	for {
		end := strings.IndexFunc(s.rest, func(r rune) bool { return r > 0x7f || !isAlphanumeric(byte(r)) && !strings.ContainsRune("-._", r) })
		if end < 0 {
			end = len(s.rest)
		}
		if end == 0 {
			return fmt.Errorf("no name at %q", s.rest)
		}
		names, s.rest = append(names, s.rest[:end]), s.rest[end:]
		if operator == '@' || !strings.HasPrefix(s.rest, "+") {
			break
		}
		s.rest = s.rest[1:]
	}
	if operator == '@' {
		if names[0] != "STRENGTH" {
			return fmt.Errorf("%q is no command", "@"+names[0])
		}
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(cipherSuites, func(c cipherSuite) bool {
			return len(names) == 1 && c.isNamed(name) || slices.Contains(c.aliases, name)
		}) {
			s.name = name
			return fmt.Errorf("%q is not known", name)
		}
	}
	s.apply(operator, names)
	return nil
}

// apply changes what is active by the suites that all names stand for.
func (s *cipherList) apply(operator byte, names []string) {
	exact := slices.ContainsFunc(cipherSuites, func(c cipherSuite) bool { return len(names) == 1 && c.isNamed(names[0]) })
	for _, c := range cipherSuites {
		switch {
		case exact && !c.isNamed(names[0]):
			continue
		case exact:
		case operator == 'a' && c.deprecated && !slices.Contains(names, "3DES"), !c.hasAliases(names):
			continue
		}
		switch operator {
		case 'a':
			if !s.killed[c.name] {
				s.active[c.name] = true
			}
		case '-':
			delete(s.active, c.name)
		case '!':
			delete(s.active, c.name)
			s.killed[c.name] = true
		}
	}
}

func (c cipherSuite) isNamed(name string) bool { return c.name == name || c.standard == name }

func (c cipherSuite) hasAliases(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(c.aliases, name) })
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
