package quorum_test

import (
	"testing"

	"xdspub/xds/quorum"
)

func TestQuorum(t *testing.T) {
	for _, text := range []string{"all", "any", "2", "17"} {
		q, err := quorum.Parse(text)
		if err != nil || q.String() != text {
			t.Errorf("%s: %v %v", text, q, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "none", "1.5", "All"} {
		if q, err := quorum.Parse(text); err == nil {
			t.Errorf("%q is %v", text, q)
		}
	}
}
