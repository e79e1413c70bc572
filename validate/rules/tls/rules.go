// Package tls holds the rules about TLS contexts, certificates, keys and secrets.
package tls

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("tls", validate.Envoy,
	badCertificate,
	badPrivateKey,
	badTrustedCA,
	certificateCount,
	certificateFile,
	certificateSelector,
	expiredCertificate,
	incompleteCertificate,
	ocspStaple,
	peerVerification,
	secretKind,
	sessionTicketKey,
	tlsParameters,
)
