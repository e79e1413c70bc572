package boring

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// OCSPResponse holds the fields of an OCSP response that Envoy reads.
type OCSPResponse struct {
	// NextUpdate is zero if the response does not have this field.
	ThisUpdate, NextUpdate time.Time

	serial *big.Int
}

// Matches reports whether the response is for the certificate. Matches compares the serial numbers.
func (r *OCSPResponse) Matches(c *Certificate) bool { return r.serial.Cmp(c.serial) == 0 }

// The ASN.1 of a response (RFC 6960), without the fields that this package does not read.
type (
	ocspResponse struct {
		Status   asn1.Enumerated
		Response ocspBytes `asn1:"explicit,tag:0,optional"`
	}
	ocspBytes struct {
		Type asn1.ObjectIdentifier
		Data []byte
	}
	ocspBasic struct {
		Data      ocspData
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
		Signers   asn1.RawValue `asn1:"explicit,tag:0,optional"`
	}
	ocspData struct {
		Version    int `asn1:"optional,default:0,explicit,tag:0"`
		Responder  asn1.RawValue
		ProducedAt time.Time `asn1:"generalized"`
		Responses  []ocspSingle
		Extensions asn1.RawValue `asn1:"explicit,tag:1,optional"`
	}
	ocspSingle struct {
		ID struct {
			Algorithm         pkix.AlgorithmIdentifier
			NameHash, KeyHash []byte
			Serial            *big.Int
		}
		Status     asn1.RawValue
		ThisUpdate time.Time     `asn1:"generalized"`
		NextUpdate time.Time     `asn1:"generalized,explicit,tag:0,optional"`
		Extensions asn1.RawValue `asn1:"explicit,tag:1,optional"`
	}
)

var oidBasicOCSP = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}

// ReadOCSP parses a response for stapling, which must be for exactly one certificate. Like Envoy, ReadOCSP does not
// verify the signature.
func ReadOCSP(der []byte) (*OCSPResponse, error) {
	var outer ocspResponse
	rest, err := asn1.Unmarshal(der, &outer)
	switch {
	case err != nil:
		return nil, errors.New("not an OCSP response in DER")
	case len(rest) > 0:
		return nil, errors.New("more than one OCSP response")
	case outer.Status != 0:
		return nil, fmt.Errorf("the OCSP response reports an error, status %d", outer.Status)
	case !outer.Response.Type.Equal(oidBasicOCSP):
		return nil, errors.New("not a basic OCSP response")
	}
	var basic ocspBasic
	if _, err := asn1.Unmarshal(outer.Response.Data, &basic); err != nil {
		return nil, errors.New("not a basic OCSP response")
	}
	if n := len(basic.Data.Responses); n != 1 {
		return nil, fmt.Errorf("the OCSP response is for %d certificates", n)
	}
	single := basic.Data.Responses[0]
	return &OCSPResponse{ThisUpdate: single.ThisUpdate, NextUpdate: single.NextUpdate, serial: single.ID.Serial}, nil
}
