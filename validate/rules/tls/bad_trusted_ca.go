package tls

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/boring"
)

var badTrustedCA = validationRule(&validate.Rule{
	Code:     "bad-trusted-ca",
	Severity: diag.Error,
	Doc: `Trusted CA certificates or a revocation list can't be loaded.

Envoy rejects a trusted_ca without a certificate or with a damaged block ("Failed to load trusted
CA certificates from"), a crl with a damaged block, and an invalid bundle of the SPIFFE validator
("Failed to load trusted CA certificate for"). It also rejects two bundles for one trust domain,
and a SPIFFE trust bundle map that is not JSON or has a key without a certificate. If both
default_validation_context and the secret beside it have a trusted_ca, the secret's counts.

Envoy accepts a crl without any list; it then has no list for any certificate, and rejects every
peer (a warning). A SPIFFE validator without a trust domain is a warning too.`,
	Checks: []diag.Check{
		{Name: "crl", Summary: "A crl can't be loaded, or has no revocation list."},
		{Name: "spiffe-bundle", Summary: "A trust bundle of the SPIFFE validator can't be loaded."},
		{Name: "spiffe-domains", Summary: "The SPIFFE validator has no trust domain, or one twice."},
		{Name: "trusted-ca", Summary: "A trusted_ca can't be loaded."},
	},
}, func(p *validate.Pass, v validation) {
	custom := isCustom(v.CertificateValidationContext)
	// Envoy loads trusted_ca even if a custom validator ignores it.
	if err := trustError(v.GetTrustedCa()); err != nil && !v.replaced && (!custom || isEmpty(v.GetTrustedCa())) {
		v.report(p, "trusted_ca", validate.Finding{Check: "trusted-ca", Message: fmt.Sprintf("trusted_ca can't be loaded: %v", err), Help: trustHelp})
	}
	if custom {
		checkSPIFFE(p, v)
		return
	}
	list, known := content(v.GetCrl())
	if !known || len(list) == 0 {
		return
	}
	switch trust, err := boring.ReadTrust(list); {
	case err != nil:
		v.report(p, "crl", validate.Finding{
			Check: "crl", Message: fmt.Sprintf("crl can't be loaded: %v", err),
			Help: "write the revocation lists of all trusted CAs in PEM",
		})
	case trust.CRLs == 0:
		v.report(p, "crl", validate.Finding{Check: "crl", Message: fmt.Sprintf("Envoy rejects every peer: "+
			"invalid crl: %v", boring.NoCRL(list)), Help: "write the revocation lists of all trusted CAs in PEM", Warning: true})
	}
})

const trustHelp = "write one or more certificates in PEM"

// trustError returns the reason why Envoy can't load trust anchors from a data source. It returns nil if they are
// valid, or if the content is unknown.
func trustError(d *corev3.DataSource) error {
	data, known := content(d)
	switch {
	case !known || d == nil:
		return nil
	case len(data) == 0:
		return errors.New("it is empty")
	}
	trust, err := boring.ReadTrust(data)
	if err == nil && len(trust.Certificates) == 0 {
		err = boring.NoCertificate(data)
	}
	return err
}

// checkSPIFFE checks the trust bundles of the SPIFFE validator.
func checkSPIFFE(p *validate.Pass, v validation) {
	if v.GetCustomValidatorConfig().GetName() != spiffeValidator {
		return
	}
	m, err := v.GetCustomValidatorConfig().GetTypedConfig().UnmarshalNew()
	config, ok := m.(*tlsv3.SPIFFECertValidatorConfig)
	if err != nil || !ok {
		return
	}
	typed := v.Path.Field("custom_validator_config").Field("typed_config")
	v.Path = typed
	if config.GetTrustBundles() != nil {
		if err := bundlesError(config.GetTrustBundles()); err != nil {
			v.report(p, "trust_bundles", validate.Finding{Check: "spiffe-bundle", Message: fmt.Sprintf("trust_bundles can't "+
				"be loaded: %v", err), Help: "write a SPIFFE trust bundle map in JSON"})
		}
		return
	}
	if len(config.GetTrustDomains()) == 0 {
		v.report(p, "", validate.Finding{Check: "spiffe-domains", Message: "the SPIFFE validator has no trust domain: Envoy " +
			"rejects every peer", Help: "set trust_domains or trust_bundles", Warning: true})
	}
	seen := make(map[string]bool)
	for i, domain := range config.GetTrustDomains() {
		v.Path = typed.Field("trust_domains").Index(i)
		err := trustError(domain.GetTrustBundle())
		if domain.GetTrustBundle().GetSpecifier() == nil {
			err = errors.New("it is missing")
		}
		switch {
		case seen[domain.GetName()]:
			v.report(p, "name", validate.Finding{
				Check:   "spiffe-domains",
				Message: fmt.Sprintf("duplicate trust domain %q", domain.GetName()), Help: "merge the certificates of both into one trust_bundle",
			})
		case err != nil && !isTrustList(domain.GetTrustBundle()):
			v.report(p, "trust_bundle", validate.Finding{Check: "spiffe-bundle", Message: fmt.Sprintf("trust_bundle of %q can't "+
				"be loaded: %v", domain.GetName(), err), Help: trustHelp})
		}
		seen[domain.GetName()] = true
	}
}

// isTrustList reports whether a bundle is valid and has a revocation list. The SPIFFE validator also accepts a
// bundle that has revocation lists only.
func isTrustList(d *corev3.DataSource) bool {
	data, _ := content(d)
	trust, err := boring.ReadTrust(data)
	return err == nil && trust.CRLs > 0
}

// bundlesError returns the reason why Envoy can't load a SPIFFE trust bundle map. It returns nil if the map is
// valid, or if the content is unknown.
func bundlesError(d *corev3.DataSource) error {
	data, known := content(d)
	if !known {
		return nil
	}
	var bundles struct {
		Domains map[string]struct {
			Keys []struct {
				Use          string   `json:"use"`
				Certificates []string `json:"x5c"`
			} `json:"keys"`
		} `json:"trust_domains"`
	}
	if err := json.Unmarshal(data, &bundles); err != nil || len(bundles.Domains) == 0 {
		return errors.New("not a JSON object with trust_domains")
	}
	for _, name := range slices.Sorted(maps.Keys(bundles.Domains)) {
		domain := bundles.Domains[name]
		if len(domain.Keys) == 0 {
			return fmt.Errorf("the trust domain %q has no keys", name)
		}
		for _, key := range domain.Keys {
			switch {
			case key.Use != "x509-svid":
				return fmt.Errorf("a key of the trust domain %q is not for x509-svid", name)
			case len(key.Certificates) == 0:
				return fmt.Errorf("a key of the trust domain %q has no x5c", name)
			}
			der, err := base64.StdEncoding.DecodeString(key.Certificates[0])
			if err != nil || !boring.IsCertificate(der) {
				return fmt.Errorf("a key of the trust domain %q holds no certificate", name)
			}
		}
	}
	return nil
}
