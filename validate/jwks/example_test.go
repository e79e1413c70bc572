package jwks_test

import (
	"fmt"

	"xdspub/validate/jwks"
)

// A key set needs a key.
func ExampleCheck() {
	fmt.Println(jwks.Check([]byte(`{"keys": []}`)))
	fmt.Println(jwks.Check([]byte(`{"keys": [{"kty": "oct", "alg": "HS256", "k": "c2VjcmV0"}]}`)))
	// Output:
	// "keys" is empty
	// <nil>
}
