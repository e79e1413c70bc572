// Package expiry decides whether a certificate expires soon.
package expiry

import "time"

// longest is the longest period before the end of a certificate in which it expires soon.
const longest = 14 * 24 * time.Hour

// Validity is the period of a certificate. The zero Validity stands for no certificate.
type Validity struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// State is the state of a certificate at a time.
type State int

// The states of a certificate.
const (
	Valid State = iota // valid, or no certificate
	ExpiresSoon
	Expired
	NotYetValid
)

// Soon returns the time from which the certificate expires soon: 14 days before its end or, for a period below
// 84 days, the last sixth of the period. Renewers replace a certificate well before: cert-manager and ACME
// clients in the last third, SPIFFE agents at half.
func (v Validity) Soon() time.Time {
	return v.Until.Add(-min(longest, v.Until.Sub(v.From)/6))
}

// At returns the state of the certificate at a time. A certificate is valid at From and at Until.
func (v Validity) At(now time.Time) State {
	switch {
	case v == Validity{}:
		return Valid
	case now.After(v.Until):
		return Expired
	case now.Before(v.From):
		return NotYetValid
	case !now.Before(v.Soon()):
		return ExpiresSoon
	}
	return Valid
}
