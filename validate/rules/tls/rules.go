// Package tls holds the rules about TLS contexts, certificates, keys and secrets.
package tls

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
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
}
