// Package boring reads certificates, keys and the names of TLS parameters as
// BoringSSL does, the library of Envoy: what it takes here Envoy takes, what it
// refuses Envoy refuses. Go's own parsers are stricter in places (a negative
// serial number) and laxer in others (a truncated block after the first is no
// error for encoding/pem).
//
// The errors say what is wrong in words for a person. They quote nothing of what
// was read: it may be a private key.
package boring
