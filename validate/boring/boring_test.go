package boring_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/certs"
	"xdspub/validate/boring"
)

// file returns a certificate or a key that the package certs makes.
func file(t testing.TB, name string) string {
	t.Helper()
	text, err := certs.Expand([]byte(fmt.Sprintf("{{bytes %q}}", name)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// says checks that an error contains the text want. An empty want means no error.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// Envoy 1.40.0 has judged each of these cases, too.
func TestChain(t *testing.T) {
	server, ca := file(t, "server.pem"), file(t, "ca.pem")
	lines := strings.Split(strings.TrimSpace(server), "\n")
	first, body, last := lines[0], lines[1:len(lines)-1], lines[len(lines)-1]
	insert := func(line string) string {
		return strings.Join([]string{first, body[0], line, strings.Join(body[1:], "\n"), last}, "\n")
	}
	for name, c := range map[string]struct{ text, want string }{
		"one":                        {server, ""},
		"chain":                      {server + ca, ""},
		"text around":                {"subject=x\n" + server + "and more", ""},
		"no line end":                {strings.TrimSpace(server), ""},
		"CRLF":                       {strings.ReplaceAll(server, "\n", "\r\n"), ""},
		"spaces behind the lines":    {strings.ReplaceAll(server, "\n", "  \n"), ""},
		"one long line":              {first + "\n" + strings.Join(body, "") + "\n" + last, ""},
		"old label":                  {strings.ReplaceAll(server, "CERTIFICATE", "X509 CERTIFICATE"), ""},
		"key before and behind":      {file(t, "server.key") + server + file(t, "server.key"), ""},
		"revocation list behind":     {server + file(t, "ca.crl"), ""},
		"half a delimiter before":    {"-----BEGIN X\n" + server, ""},
		"delimiter within a line":    {"see -----BEGIN CERTIFICATE-----\n" + server, ""},
		"empty":                      {"", "it has no PEM block"},
		"empty line within":          {insert(""), "an empty line or a header"},
		"header":                     {insert("X-Y: z\n"), "an empty line or a header"},
		"no base64":                  {insert("!!!!"), "is not valid base64"},
		"no end":                     {strings.TrimSuffix(strings.TrimSpace(server), last), "has no -----END line"},
		"another end":                {strings.ReplaceAll(server, "END CERTIFICATE", "END X"), "has another label"},
		"begun twice":                {first + "\n" + server, "is not valid base64"},
		"indented":                   {"  " + strings.ReplaceAll(server, "\n", "\n  "), "is not at the start of a line"},
		"byte order mark":            {"\ufeff" + server, "byte order mark"},
		"line ends in letters":       {strings.ReplaceAll(server, "\n", `\n`), "characters \\n"},
		"request":                    {strings.ReplaceAll(server, "CERTIFICATE", "CERTIFICATE REQUEST"), `a PEM block "CERTIFICATE REQUEST"`},
		"damaged block of any kind":  {"-----BEGIN X-----\n!!!\n-----END X-----\n" + server, "is not valid base64"},
		"damaged second":             {server + ca[:200], "has no -----END line"},
		"second is no certificate":   {server + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "is not an X.509 certificate"},
		"DER":                        {"0\x82\x01\x02", "may be DER"},
		"bytes behind a certificate": {trailing(t, server), "is not an X.509 certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := boring.Chain([]byte(c.text))
			says(t, err, c.want)
		})
	}
}

// trailing returns a certificate with bytes after its DER.
func trailing(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	der, err := base64.StdEncoding.DecodeString(strings.Join(lines[1:len(lines)-1], ""))
	if err != nil {
		t.Fatal(err)
	}
	return lines[0] + "\n" + base64.StdEncoding.EncodeToString(append(der, 1, 2, 3)) + "\n" + lines[len(lines)-1] + "\n"
}

func TestCheckKey(t *testing.T) {
	leaf, err := boring.Chain([]byte(file(t, "server.pem")))
	if err != nil {
		t.Fatal(err)
	}
	key := file(t, "server.key")
	for name, c := range map[string]struct{ text, password, want string }{
		"its own":            {key, "", ""},
		"with a password":    {key, "secret", ""},
		"label of EC":        {strings.ReplaceAll(key, "PRIVATE", "EC PRIVATE"), "", ""},
		"first of two":       {key + file(t, "other.key"), "", ""},
		"encrypted":          {file(t, "encrypted.key"), "secret", ""},
		"a C string":         {file(t, "encrypted.key"), "secret\x00x", ""},
		"second of two":      {file(t, "other.key") + key, "", "does not belong"},
		"no password":        {file(t, "encrypted.key"), "", "there is no password"},
		"another kind":       {file(t, "rsa.key"), "", "does not belong"},
		"public":             {strings.ReplaceAll(key, "PRIVATE", "PUBLIC"), "", `a PEM block "PUBLIC KEY"`},
		"of OpenSSH":         {strings.ReplaceAll(key, "PRIVATE", "OPENSSH PRIVATE"), "", `a PEM block "OPENSSH PRIVATE KEY"`},
		"label of encrypted": {strings.ReplaceAll(key, "PRIVATE", "ENCRYPTED PRIVATE"), "x", "contains no encrypted key"},
		"damaged":            {key[:100], "", "has no -----END line"},
		"damaged before":     {"-----BEGIN X-----\n!\n-----END X-----\n" + key, "", "is not valid base64"},
	} {
		t.Run(name, func(t *testing.T) { says(t, boring.CheckKey([]byte(c.text), c.password, leaf), c.want) })
	}
}

// names and suites are the names and the cipher suites that the latest Envoy knows.
var (
	names  = envoyapi.Latest.TLSNames()
	suites = suitesOf(names)
)

func suitesOf(names envoyapi.TLSNames) (list []boring.CipherSuite) {
	for _, c := range names.Ciphers {
		list = append(list, boring.CipherSuite(c))
	}
	return list
}

func TestCheckCiphers(t *testing.T) {
	for list, want := range map[string]string{
		"":                                    "",
		"ECDHE-RSA-AES128-GCM-SHA256":         "",
		"DES-CBC3-SHA":                        "",
		":AES128-SHA::AES256-SHA:":            "",
		"[AES128-SHA|ECDHE+AESGCM]ALL":        "",
		"DEFAULT:!SHA:@STRENGTH":              "",
		"ALL:-ALL:AES":                        "",
		"ALL@STRENGTH":                        "",
		"TLS_RSA_WITH_AES_128_CBC_SHA":        "",
		"FOO":                                 `unknown name "FOO"`,
		"ALL:!aNULL":                          `unknown name "aNULL"`,
		"ECDHE+AES128-SHA":                    `unknown name "AES128-SHA"`,
		"ecdhe-rsa-aes128-gcm-sha256":         "unknown name",
		"TLS_AES_128_GCM_SHA256":              "unknown name",
		"AES128-SHA,AES256-SHA":               "a name is missing at",
		"AES128-SHA AES256-SHA":               "a name is missing at",
		"!ALL:ALL":                            "the list selects no cipher suite",
		"+AES128-SHA":                         "the list selects no cipher suite",
		"[]":                                  "the list selects no cipher suite",
		"[AES128-SHA":                         "has no closing bracket",
		"[AES128-SHA|[AES256-SHA]]":           "is not allowed in a group",
		"[AES128-SHA]:!AES256-SHA":            "is not allowed after a group",
		"ALL:@SECLEVEL=1":                     `unknown command "@SECLEVEL"`,
		"TLS_RSA_WITH_3DES_EDE_CBC_SHA:!FIPS": "the list selects no cipher suite",
	} {
		t.Run(list, func(t *testing.T) {
			_, err := boring.CheckCiphers(list, suites)
			says(t, err, want)
		})
	}
}

func TestCheckNames(t *testing.T) {
	for _, c := range []struct {
		known      map[string]string
		list, want string
	}{
		{names.Groups, "", ""},
		{names.Groups, "X25519MLKEM768:x25519:P-256:secp384r1", ""},
		{names.Groups, "P-224", `unknown name "P-224"`},
		{names.Groups, "P-256:", `unknown name ""`},
		{names.Groups, "X25519:x25519", `"x25519" is the same as "X25519"`},
		{names.Signatures, "rsa_pss_rsae_sha256:ECDSA+SHA256:mldsa65", ""},
		{names.Signatures, "rsa_pss_pss_sha256", "unknown name"},
		{names.Signatures, "ed25519:ed25519", "duplicate name"},
	} {
		t.Run(c.list, func(t *testing.T) {
			_, err := boring.CheckNames(c.list, c.known)
			says(t, err, c.want)
		})
	}
}

func TestCheckOID(t *testing.T) {
	for oid, want := range map[string]string{
		"1.2": "", "2.999.1": "", "0.39": "", "msUPN": "", "2.18446744073709551535": "",
		"": "numbers separated by dots", "1": "numbers separated by dots", "1..2": "numbers separated by dots", "1.02": "numbers separated by dots", " 1.2": "numbers separated by dots", "UPN": "numbers separated by dots",
		"1.2.18446744073709551616": "numbers separated by dots", "3.1": "at most 2", "1.40": "at most 39", "2.18446744073709551536": "too large",
	} {
		t.Run(oid, func(t *testing.T) { says(t, boring.CheckOID(oid), want) })
	}
}

func FuzzTexts(f *testing.F) {
	for _, name := range []string{"server.pem", "encrypted.key", "server.key", "ca.crl", "broken.pem", "server.ocsp", "server.p12"} {
		f.Add([]byte(file(f, name)))
	}
	leaf, err := boring.Chain([]byte(file(f, "server.pem")))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := boring.Chain(text); err == nil && c == nil {
			t.Error("neither a certificate nor an error")
		}
		boring.ReadTrust(text)
		boring.ReadOCSP(text)
		boring.CheckKey(text, "secret", leaf)
		boring.CheckCiphers(string(text), suites)
	})
}
