package store

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"filippo.io/age"

	"xdspub/internal/safefile"
)

const (
	// intro begins an encrypted change, and headerEnd begins the last line of its header.
	intro     = "age-encryption.org/v1\n"
	headerEnd = "\n--- "
	// maxHeader bounds the header of an encrypted change, which has a stanza for each recipient.
	maxHeader = 64 << 10
	// maxKeyFile bounds a file with age keys.
	maxKeyFile = 64 << 10
)

// cipher encrypts and decrypts changes with the age keys of a file. A nil cipher leaves changes as they are.
type cipher struct {
	path       string
	identities []age.Identity
	recipients []age.Recipient
	secret     []byte // the key for name
	sum        string // the result of fingerprint
}

// CipherError means that a change in the store is not encrypted as this process requires, or that the file with the age
// keys is wrong.
type CipherError struct {
	Place  string // the change, or the place in the file
	Reason string
}

func (e *CipherError) Error() string { return e.Place + " " + e.Reason }

// readCipher reads a file with age keys. Each line has an identity or a recipient. Without a path, readCipher returns
// nil. No error quotes the file.
func readCipher(path string) (*cipher, error) {
	if path == "" {
		return nil, nil
	}
	text, err := safefile.Read(path, maxKeyFile)
	if err != nil {
		return nil, &CipherError{"the file of --encrypt-secrets", "can't be read: " + err.Error()}
	}
	c := &cipher{path: path}
	var names []string // of the recipients
	var first string   // the first identity
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, ok := c.add(line)
		if !ok {
			return nil, &CipherError{fmt.Sprintf("%s:%d:", path, number), "the line is neither an age identity (AGE-SECRET-KEY-…) nor an age recipient (age1…)"}
		}
		if c.recipients, names = append(c.recipients, r), append(names, fmt.Sprint(r)); first == "" && len(c.identities) > 0 {
			first = line
		}
	}
	if first == "" {
		return nil, &CipherError{path, "has no age identity: write a line that age-keygen prints, AGE-SECRET-KEY-…"}
	}
	if c.secret, err = hkdf.Key(sha256.New, []byte(first), nil, "xdspub: names of a store", sha256.Size); err != nil {
		return nil, err
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(names), "\n")))
	c.sum = c.name(hex.EncodeToString(sum[:]))
	return c, nil
}

// add adds the key in a line, and returns its recipient. ok means that the line has a key.
func (c *cipher) add(line string) (r age.Recipient, ok bool) {
	if list, err := age.ParseRecipients(strings.NewReader(line)); err == nil {
		return list[0], true
	}
	list, err := age.ParseIdentities(strings.NewReader(line))
	if err != nil {
		return nil, false
	}
	c.identities = append(c.identities, list[0])
	switch i := list[0].(type) {
	case *age.X25519Identity:
		return i.Recipient(), true
	case *age.HybridIdentity:
		return i.Recipient(), true
	}
	return nil, false
}

// fingerprint returns a name of the recipients; empty without encryption. The name changes if a recipient or the first
// identity of the file changes.
func (c *cipher) fingerprint() string {
	if c == nil {
		return ""
	}
	return c.sum
}

// name returns the name that the store has in place of a hash of resources: the hash itself would confirm a guess of a
// secret. A name depends on the hash and on the first identity of the file, so equal resources keep their name.
func (c *cipher) name(hash string) string {
	if c == nil || hash == "" {
		return hash
	}
	m := hmac.New(sha256.New, c.secret)
	_, _ = io.WriteString(m, hash) // a Hash returns no error
	name := hex.EncodeToString(m.Sum(nil))
	return name[:min(len(name), len(hash))]
}

// encrypt returns the bytes of a change for the store.
func (c *cipher) encrypt(data []byte) ([]byte, error) {
	if c == nil {
		return data, nil
	}
	var b bytes.Buffer
	w, err := age.Encrypt(&b, c.recipients...)
	if err != nil {
		return nil, &CipherError{c.path, "can't be used: " + err.Error()}
	}
	if b.Len() > maxHeader {
		return nil, &CipherError{c.path, fmt.Sprintf("has too many keys: their header has %d bytes, and %d are allowed", b.Len(), maxHeader)}
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// requires returns an error if c is nil and the change is encrypted, or if c is not nil and the change is plain.
func (c *cipher) requires(encrypted bool, key string) error {
	switch place := "the change at " + key; {
	case c == nil && encrypted:
		return &CipherError{place, "is encrypted: set --encrypt-secrets to a file with an age identity of this machine"}
	case c != nil && !encrypted:
		return &CipherError{place, "is not encrypted, and --encrypt-secrets is set here: set it at the writer, too; if it is set there, somebody else has written the change"}
	}
	return nil
}

// decrypt returns the bytes of a change that the store has at a key.
func (c *cipher) decrypt(data []byte, key string) ([]byte, error) {
	encrypted := bytes.HasPrefix(data, []byte(intro))
	if err := c.requires(encrypted, key); err != nil || !encrypted {
		return data, err
	}
	if !bytes.Contains(data[:min(len(data), maxHeader)], []byte(headerEnd)) {
		return nil, &DamagedError{key, fmt.Errorf("its header has more than %d bytes, or does not end", maxHeader)}
	}
	r, err := age.Decrypt(bytes.NewReader(data), c.identities...)
	if _, none := errors.AsType[*age.NoIdentityMatchError](err); none {
		return nil, &CipherError{"the change at " + key, fmt.Sprintf("is encrypted for others: add an identity to %s, or the recipient of this machine to the file of the writer", c.path)}
	}
	if err == nil {
		data, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, &DamagedError{key, fmt.Errorf("it can't be decrypted: %w", err)}
	}
	return data, nil
}
