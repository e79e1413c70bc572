package boring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// groups are the names of the key exchange groups, and what they stand for.
var groups = map[string]string{
	"MLKEM1024": "MLKEM1024", "X25519MLKEM768": "X25519MLKEM768",
	"P-256": "P-256", "prime256v1": "P-256",
	"P-384": "P-384", "secp384r1": "P-384",
	"P-521": "P-521", "secp521r1": "P-521",
	"X25519": "X25519", "x25519": "X25519",
}

// signatures are the names of the signature algorithms, and what they stand for.
var signatures = map[string]string{
	"ecdsa_secp256r1_sha256": "ecdsa_secp256r1_sha256", "ECDSA+SHA256": "ecdsa_secp256r1_sha256",
	"ecdsa_secp384r1_sha384": "ecdsa_secp384r1_sha384", "ECDSA+SHA384": "ecdsa_secp384r1_sha384",
	"ecdsa_secp521r1_sha512": "ecdsa_secp521r1_sha512", "ECDSA+SHA512": "ecdsa_secp521r1_sha512",
	"ecdsa_sha1": "ecdsa_sha1", "ECDSA+SHA1": "ecdsa_sha1",
	"ed25519": "ed25519",
	"mldsa44": "mldsa44", "mldsa65": "mldsa65", "mldsa87": "mldsa87",
	"rsa_pkcs1_sha1": "rsa_pkcs1_sha1", "RSA+SHA1": "rsa_pkcs1_sha1",
	"rsa_pkcs1_sha256": "rsa_pkcs1_sha256", "RSA+SHA256": "rsa_pkcs1_sha256",
	"rsa_pkcs1_sha256_legacy": "rsa_pkcs1_sha256_legacy",
	"rsa_pkcs1_sha384":        "rsa_pkcs1_sha384", "RSA+SHA384": "rsa_pkcs1_sha384",
	"rsa_pkcs1_sha512": "rsa_pkcs1_sha512", "RSA+SHA512": "rsa_pkcs1_sha512",
	"rsa_pss_rsae_sha256": "rsa_pss_rsae_sha256", "RSA-PSS+SHA256": "rsa_pss_rsae_sha256", "PSS+SHA256": "rsa_pss_rsae_sha256",
	"rsa_pss_rsae_sha384": "rsa_pss_rsae_sha384", "RSA-PSS+SHA384": "rsa_pss_rsae_sha384", "PSS+SHA384": "rsa_pss_rsae_sha384",
	"rsa_pss_rsae_sha512": "rsa_pss_rsae_sha512", "RSA-PSS+SHA512": "rsa_pss_rsae_sha512", "PSS+SHA512": "rsa_pss_rsae_sha512",
}

// Groups are the names that a list of key exchange groups can have.
func Groups() []string { return slices.Sorted(maps.Keys(groups)) }

// Signatures are the names that a list of signature algorithms can have.
func Signatures() []string { return slices.Sorted(maps.Keys(signatures)) }

// CheckGroups says what is wrong with a list of key exchange groups, divided by
// colons, and with which name.
func CheckGroups(list string) (name string, err error) { return checkNames(list, groups) }

// CheckSignatures says what is wrong with a list of signature algorithms, divided
// by colons, and with which name.
func CheckSignatures(list string) (name string, err error) { return checkNames(list, signatures) }

func checkNames(list string, known map[string]string) (string, error) {
	if list == "" {
		return "", nil // the default
	}
	seen := make(map[string]string)
	for name := range strings.SplitSeq(list, ":") {
		meant, ok := known[name]
		if !ok {
			return name, fmt.Errorf("%q is not known", name)
		}
		if first, twice := seen[meant]; twice {
			if first == name {
				return name, fmt.Errorf("%q is named twice", name)
			}
			return name, fmt.Errorf("%q is the same as %q", name, first)
		}
		seen[meant] = name
	}
	return "", nil
}
