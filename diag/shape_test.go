package diag

import (
	"strings"
	"testing"
)

// TestMarks: each match of a shape contains a mark of the shape.
func TestMarks(t *testing.T) {
	long := strings.Repeat("A1b2", 12)
	for _, secret := range []string{
		"-----BEGIN RSA PRIVATE KEY-----x", "BASIC " + long, "Bearer " + long, "digest " + long, "Negotiate " + long, "ApiKey " + long,
		"a://b:" + long + "@c", "$apr1$" + long, "{SHA}" + long, "eyJ" + long + "." + long,
		"AKIA" + strings.Repeat("A", 16), "ASIA" + strings.Repeat("A", 16), "ghp_" + long, "gho_" + long, "ghu_" + long, "ghs_" + long, "ghr_" + long,
		"github_pat_" + long, "glpat-" + long, "xoxb-" + long, "AIza" + long, "sk_live_" + long, "rk_live_" + long,
	} {
		found := false
		for _, shape := range values {
			if found = found || shape.MatchString(secret); shape.MatchString(secret) && Hide("x "+secret) == "x "+secret {
				t.Errorf("%s is shown", secret)
			}
		}
		if !found {
			t.Errorf("%s is no secret", secret)
		}
	}
}
