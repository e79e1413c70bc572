package boring

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What is wrong with a password.
var (
	ErrNoPassword    = errors.New("the key is encrypted, and there is no password")
	ErrWrongPassword = errors.New("the password does not decrypt the key")
)

// errUnknown: it can't be told here what BoringSSL finds.
var errUnknown = errors.New("unknown")

// CheckKey says what keeps Envoy from loading a private key and using it for the
// certificate, where that is not nil. Only the first key in the text counts.
func CheckKey(text []byte, password string, leaf *Certificate) error {
	list, broken := blocks(text)
	at := slices.IndexFunc(list, func(b block) bool { return slices.Contains(keyLabels, b.label) })
	if at < 0 {
		if broken != nil {
			return broken
		}
		return noBlock(text, "private key", list)
	}
	// A password is a C string in BoringSSL.
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

// checkPair says why a private key is not that of the certificate.
func (c *Certificate) checkPair(key crypto.PrivateKey) error {
	private, ok := key.(interface{ Public() crypto.PublicKey })
	if !ok || c.key == nil || !c.key.Equal(private.Public()) {
		return errors.New("the key does not belong to the certificate")
	}
	return nil
}

// privateKey is what the block holds, nil for a kind that no certificate has.
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
