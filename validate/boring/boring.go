// Package boring reads certificates, keys and the names of TLS parameters as BoringSSL, the library of Envoy,
// does. Package boring accepts what Envoy accepts and refuses what Envoy refuses. Go's own parsers are
// stricter in places (a negative serial number) and laxer elsewhere (encoding/pem ignores a truncated block
// after the first).
//
// Errors are sentences for people. Errors never quote the input, because the input may be a private key.
package boring
