// Package expiry says when a certificate is about to expire.
package expiry

import "time"

// longest is the longest time before the end of a certificate that counts as soon.
const longest = 14 * 24 * time.Hour

// Soon returns the time from which a certificate expires soon: 14 days before its end, and of a certificate that is
// valid for less than 84 days the last sixth of its validity. Renewers replace a certificate well before that: cert-manager
// and ACME clients in the last third, SPIFFE agents at half.
func Soon(from, until time.Time) time.Time {
	return until.Add(-min(longest, until.Sub(from)/6))
}
