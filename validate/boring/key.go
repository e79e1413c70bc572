package boring

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Faults of a password.
var (
	ErrNoPassword    = errors.New("the key is encrypted, and there is no password")
	ErrWrongPassword = errors.New("the password does not decrypt the key")
)

// errUnknown means that this package can't tell BoringSSL's verdict.
var errUnknown = errors.New("unknown")

// CheckKey returns the reason why Envoy can't load a private key, or nil. Unless leaf is nil, CheckKey also checks
// that the key belongs to the certificate leaf. Only the first key in the text counts. CheckKey returns nil if it
// can't tell BoringSSL's verdict.
func CheckKey(text []byte, password string, leaf *Certificate) error {
	list, broken := blocks(text)
	at := slices.IndexFunc(list, func(b block) bool { return slices.Contains(keyLabels, b.label) })
	if at < 0 {
		if broken != nil {
			return broken
		}
		return noBlock(text, "private key", list)
	}
	// BoringSSL reads a password as a C string.
	password, _, _ = strings.Cut(password, "\x00")
	key, err := list[at].privateKey(password)
	switch {
	case errors.Is(err, errUnknown):
		return nil
	case err != nil || leaf == nil:
		return err
	}
	return leaf.checkPair(key)
}

// checkPair returns the reason why a private key does not belong to the certificate, or nil.
func (c *Certificate) checkPair(key crypto.PrivateKey) error {
	private, ok := key.(interface{ Public() crypto.PublicKey })
	if !ok || c.key == nil || !c.key.Equal(private.Public()) {
		return errors.New("the key does not belong to the certificate")
	}
	return nil
}

// privateKey decrypts and parses the key in the block. It returns errUnknown if it can't tell BoringSSL's verdict.
func (b block) privateKey(password string) (crypto.PrivateKey, error) {
	der := b.data
	var err error
	switch {
	case b.header != "":
		der, err = b.decryptLegacy(password)
	case b.label == "ENCRYPTED PRIVATE KEY":
		der, err = decryptPKCS8(der, password)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(b.label, "RSA"):
		if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
			return key, nil
		}
	case strings.HasPrefix(b.label, "EC "):
		if key, err := x509.ParseECPrivateKey(der); err == nil {
			return key, nil
		}
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("a PEM block %q contains no RSA, ECDSA or Ed25519 key", b.label)
	}
	return key, nil
}
