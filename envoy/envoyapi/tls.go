package envoyapi

import (
	"maps"
	"strings"
)

// TLSNames are the names that Envoy's TLS library knows.
type TLSNames struct {
	// Ciphers are the cipher suites that can be chosen, those of TLS 1.2 and before.
	Ciphers []CipherSuite
	// Groups has the names of the key exchange groups, and for each the one that it stands for;
	// Signatures those of the signature algorithms.
	Groups, Signatures map[string]string
	// Newer are the names that the version does not have yet, with the release that brought each.
	Newer map[string]string
}

// CipherSuite is one of TLS 1.2 and before.
type CipherSuite struct {
	// Name is OpenSSL's, Standard the one of the RFCs.
	Name, Standard string
	// Aliases are the names of several suites that stand for this one too.
	Aliases []string
	// Deprecated ones are chosen by their own name, or as 3DES.
	Deprecated bool
}

// TLSNames returns the names that Envoy's TLS library knows.
func (v *Version) TLSNames() TLSNames { return v.tables().tls }

func (r *reader) tlsNames(ciphers, groups, signatures string) TLSNames {
	names := TLSNames{Groups: r.aliases(groups), Signatures: r.aliases(signatures), Newer: make(map[string]string)}
	for _, file := range []string{ciphers, groups, signatures} {
		maps.Copy(names.Newer, r.newer(file))
	}
	for _, words := range r.rows(ciphers, 2) {
		name, deprecated := strings.CutPrefix(words[0], "-")
		names.Ciphers = append(names.Ciphers, CipherSuite{name, words[1], words[2:], deprecated})
	}
	return names
}

// aliases reads lines of a name and its other names.
func (r *reader) aliases(file string) map[string]string {
	all := make(map[string]string)
	for _, words := range r.rows(file, 1) {
		for _, name := range words {
			all[name] = words[0]
		}
	}
	return all
}
