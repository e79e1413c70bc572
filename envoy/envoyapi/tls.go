package envoyapi

import (
	"maps"
	"strings"
)

// TLSNames are the names that Envoy's TLS library knows.
type TLSNames struct {
	// Ciphers are the cipher suites that users can choose: suites of TLS 1.2 and older.
	Ciphers []CipherSuite
	// Groups maps each name of a key exchange group to its first name in tls-groups.txt. Signatures does so for
	// signature algorithms.
	Groups, Signatures map[string]string
	// Newer maps a name that later releases have to the first of these releases.
	Newer map[string]string
}

// CipherSuite is a cipher suite of TLS 1.2 or older.
type CipherSuite struct {
	// Name is the name in OpenSSL, Standard the name in the RFCs.
	Name, Standard string
	// Aliases are names of several suites, among them this suite.
	Aliases []string
	// Deprecated means that no alias except 3DES adds the suite to a list.
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

// aliases maps each word of a row to the first word of the row.
func (r *reader) aliases(file string) map[string]string {
	all := make(map[string]string)
	for _, words := range r.rows(file, 1) {
		for _, name := range words {
			all[name] = words[0]
		}
	}
	return all
}
