package diag_test

import (
	"slices"
	"strings"
	"testing"

	"xdspub/diag"
)

func TestMisspelt(t *testing.T) {
	fields := "name type connect_timeout max_size max_pending_requests per_connection_buffer_limit_bytes lb_policy prefix_ranges tls_minimum_version tls_maximum_version"
	for _, c := range []struct {
		names, word, right string
		want               bool
	}{
		{fields, "conect_timeuot", "connect_timeout", true},
		{fields, "connect-timeout", "connect_timeout", true},
		{fields, "connectTimeout", "connect_timeout", true},
		{fields, "connecttimeout", "connect_timeout", true},
		{fields, "CONNECT_TIMEOUT", "connect_timeout", true},
		{fields, "max_pendng_requests", "max_pending_requests", true},
		{fields, "connect_timeouts", "connect_timeout", false}, // may be a field of a newer Envoy
		{fields, "max_pending_request", "max_pending_requests", false},
		{fields, "min_size", "max_size", false}, // a word of the API
		{fields, "suffix_ranges", "prefix_ranges", false},
		{fields, "refix_ranges", "prefix_ranges", false},             // the first letter is rarely wrong
		{fields, "tls_mnimum_version", "tls_minimum_version", false}, // near to both
		{fields, "nam", "name", false},                               // too short
		{fields, "lb_polciy", "lb_policy", true},
		{fields, "lbx_policy", "lb_policy", false},
		{fields, "lb_policy_x", "lb_policy", false}, // another part
		{"STRICT_DNS LOGICAL_DNS STATIC EDS ORIGINAL_DST", "STRCT_DNS", "STRICT_DNS", true},
		{"STRICT_DNS LOGICAL_DNS STATIC EDS ORIGINAL_DST", "STRICT_DSN", "STRICT_DNS", true},
		{"STRICT_DNS LOGICAL_DNS STATIC EDS ORIGINAL_DST", "strict-dns", "STRICT_DNS", true},
		{"TLSv1_2 TLSv1_3", "TLSv1_4", "TLSv1_3", false},
		{"HttpConnectionManager", "HttpConnectionManger", "HttpConnectionManager", true},
		{"MaxSizeLimit", "MinSizeLimit", "MaxSizeLimit", false},
		{"ab_c a_bc", "abc", "ab_c", false}, // the same letters
		{"enabled", "unabled", "enabled", false},
	} {
		isWord := func(word string) bool { return slices.Contains(strings.Fields("min suffix"), word) }
		if got := diag.NewCandidates(strings.Fields(c.names)).Misspelt(c.word, c.right, isWord); got != c.want {
			t.Errorf("%s for %s: %v, want %v", c.word, c.right, got, c.want)
		}
	}
}

// TestSafe: a correction of a warning is not safe, because the text has a meaning.
func TestSafe(t *testing.T) {
	for _, c := range []struct {
		severity diag.Severity
		sure     bool
		want     bool
	}{{diag.Error, true, true}, {diag.Error, false, false}, {diag.Warning, true, false}} {
		d := diag.Diagnostic{Severity: c.severity}
		d.Correct(diag.Correction{Wrong: "a", Right: "b", Sure: c.sure}, diag.Edit{})
		if d.Fixes[0].Safe != c.want {
			t.Errorf("%s, sure %v: safe %v", c.severity, c.sure, d.Fixes[0].Safe)
		}
		if d.WithoutSafe().Fixes[0].Safe || d.Fixes[0].Safe != c.want {
			t.Error("WithoutSafe leaves a safe fix, or changes the finding")
		}
	}
}
