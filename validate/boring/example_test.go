package boring_test

import (
	"fmt"

	"xdspub/validate/boring"
)

// CheckCiphers takes what BoringSSL takes, and no other names of OpenSSL.
func ExampleCheckCiphers() {
	for _, list := range []string{"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA999", "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]"} {
		_, err := boring.CheckCiphers(list)
		fmt.Println(list, err)
	}
	// Output:
	// ECDHE-ECDSA-AES128-GCM-SHA256 <nil>
	// ECDHE-RSA-AES256-SHA999 "ECDHE-RSA-AES256-SHA999" is not known
	// [ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305] <nil>
}
