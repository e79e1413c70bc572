package boring_test

import (
	"fmt"

	"xdspub/validate/boring"
)

// CheckCiphers accepts only the names of BoringSSL, and not all names of OpenSSL.
func ExampleCheckCiphers() {
	known := []boring.CipherSuite{
		{Name: "ECDHE-ECDSA-AES128-GCM-SHA256", Standard: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
		{Name: "ECDHE-RSA-AES128-GCM-SHA256", Standard: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
		{Name: "ECDHE-RSA-CHACHA20-POLY1305", Standard: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
	}
	for _, list := range []string{"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA999", "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]"} {
		_, err := boring.CheckCiphers(list, known)
		fmt.Println(list, err)
	}
	// Output:
	// ECDHE-ECDSA-AES128-GCM-SHA256 <nil>
	// ECDHE-RSA-AES256-SHA999 unknown name "ECDHE-RSA-AES256-SHA999"
	// [ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305] <nil>
}
