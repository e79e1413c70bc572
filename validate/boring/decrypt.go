package boring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// blockCipher is a cipher in CBC mode.
type blockCipher struct {
	keyLength int
	create    func(key []byte) (cipher.Block, error)
}

func (c blockCipher) decrypt(key, iv, data []byte) ([]byte, error) {
	b, err := c.create(key)
	if err != nil || len(iv) != b.BlockSize() || len(data) == 0 || len(data)%b.BlockSize() != 0 {
		return nil, errors.New("the encrypted key is damaged")
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(b, iv).CryptBlocks(plain, data)
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > b.BlockSize() || !bytes.HasSuffix(plain, bytes.Repeat([]byte{byte(padding)}, padding)) {
		return nil, ErrWrongPassword
	}
	return plain[:len(plain)-padding], nil
}

// legacyCiphers maps the names in a DEK-Info header to ciphers.
var legacyCiphers = map[string]blockCipher{
	"DES-CBC":      {8, des.NewCipher},
	"DES-EDE3-CBC": {24, des.NewTripleDESCipher},
	"AES-128-CBC":  {16, aes.NewCipher},
	"AES-192-CBC":  {24, aes.NewCipher},
	"AES-256-CBC":  {32, aes.NewCipher},
}

// decryptLegacy decrypts a key in OpenSSL's older form, in which the header of the block names the cipher.
func (b block) decryptLegacy(password string) ([]byte, error) {
	procType, dekInfo, _ := strings.Cut(b.header, "\n")
	if !strings.HasPrefix(procType, "Proc-Type: 4,ENCRYPTED") {
		return nil, errHeader
	}
	name, ivText, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(dekInfo), "DEK-Info: "), ",")
	c, ok := legacyCiphers[name]
	if !ok {
		return nil, fmt.Errorf("the key is encrypted with %q, which BoringSSL does not support", name)
	}
	iv, err := hex.DecodeString(ivText)
	if err != nil || len(iv) < 8 {
		return nil, errors.New("the encrypted key is damaged")
	}
	if password == "" {
		return nil, ErrNoPassword
	}
	var key, digest []byte
	for len(key) < c.keyLength {
		sum := md5.Sum(append(append(digest, password...), iv[:8]...))
		digest = sum[:]
		key = append(key, digest...)
	}
	return c.decrypt(key[:c.keyLength], iv, b.data)
}

// The schemes of PKCS #5 that BoringSSL supports.
var (
	oidPBES2   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	pbes1Known = map[string]bool{"1.2.840.113549.1.12.1.1": true, "1.2.840.113549.1.12.1.3": true, "1.2.840.113549.1.12.1.6": true}
	prfs       = map[string]func() hash.Hash{"1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New}
	pbes2      = map[string]blockCipher{
		"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
		"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
		"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
		"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
	}
)

const oidRC2 = "1.2.840.113549.3.2"

// The ASN.1 of an encrypted key.
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2Params struct{ KDF, Cipher pkix.AlgorithmIdentifier }
	kdfParams   struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

// decryptPKCS8 decrypts an encrypted PKCS #8 key. It returns errUnknown for a scheme that BoringSSL supports and
// this package does not, and for more than maxIterations iterations.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	if rest, err := asn1.Unmarshal(der, &key); err != nil || len(rest) > 0 {
		return nil, errors.New(`a PEM block "ENCRYPTED PRIVATE KEY" contains no encrypted key`)
	}
	if password == "" {
		return nil, ErrNoPassword
	}
	scheme := key.Algorithm.Algorithm.String()
	switch {
	case pbes1Known[scheme]:
		return nil, errUnknown
	case !key.Algorithm.Algorithm.Equal(oidPBES2):
		return nil, fmt.Errorf("the key is encrypted by the scheme %s, which BoringSSL does not support", scheme)
	}
	var params pbes2Params
	var kdf kdfParams
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &params); err != nil {
		return nil, errors.New("the encrypted key is damaged")
	}
	if !params.KDF.Algorithm.Equal(oidPBKDF2) {
		return nil, fmt.Errorf("the key is encrypted with the key derivation %s; BoringSSL supports PBKDF2 only", params.KDF.Algorithm)
	}
	if _, err := asn1.Unmarshal(params.KDF.Parameters.FullBytes, &kdf); err != nil || kdf.Iterations < 1 {
		return nil, errors.New("the encrypted key is damaged")
	}
	prf := sha1.New
	if len(kdf.PRF.Algorithm) > 0 {
		if prf = prfs[kdf.PRF.Algorithm.String()]; prf == nil {
			return nil, fmt.Errorf("the key is encrypted with PBKDF2 and %s; BoringSSL supports HMAC-SHA-1 and HMAC-SHA-256 only", kdf.PRF.Algorithm)
		}
	}
	name := params.Cipher.Algorithm.String()
	if name == oidRC2 || kdf.Iterations > maxIterations {
		return nil, errUnknown
	}
	c, ok := pbes2[name]
	if !ok {
		return nil, fmt.Errorf("the key is encrypted with the cipher %s, which BoringSSL does not support", name)
	}
	var iv []byte
	if _, err := asn1.Unmarshal(params.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, errors.New("the encrypted key is damaged")
	}
	derived, err := pbkdf2.Key(prf, password, kdf.Salt, kdf.Iterations, c.keyLength)
	if err != nil {
		return nil, errUnknown
	}
	return c.decrypt(derived, iv, key.Data)
}

// maxIterations bounds the time of one decryption.
const maxIterations = 2_000_000
