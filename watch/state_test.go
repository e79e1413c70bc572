package watch

import (
	"slices"
	"testing"
)

// TestTransitions checks each pair of a state and an input by rules that do not use the table: when a state is
// trusted, and how long an idle pass is valid.
func TestTransitions(t *testing.T) {
	gains, loses := []input{planPublished, movedNothing}, []input{planAll, planObjected, planWaits, planRefused, failed, panicked}
	for s := range states {
		for i := range inputs {
			is := transitions[s][i]
			if s == gone || i == targetRemoved {
				if is != gone {
					t.Errorf("state %d, input %d: state %d, and the target is gone", s, i, is)
				}
				continue
			}
			if is == gone {
				t.Errorf("state %d, input %d: the watch ends, and the target is there", s, i)
			}
			if want := slices.Contains(gains, i) || s.trusted() && !slices.Contains(loses, i); is.trusted() != want {
				t.Errorf("state %d, input %d: state %d: an edit trusts the directory: %t", s, i, is, !want)
			}
			if want := i == movedNothing || s.hasIdlePass() && i == failed; is.hasIdlePass() != want {
				t.Errorf("state %d, input %d: state %d: a pass may end early: %t", s, i, is, !want)
			}
		}
	}
}

// TestJoinedNews checks that joined news have the most urgent reason, and the first of two equally urgent
// reasons.
func TestJoinedNews(t *testing.T) {
	for _, tt := range []struct{ was, later, want string }{
		{"change", "rescan", "change"},
		{"rescan", "change", "rescan"},
		{"change", hangup, hangup},
		{hangup, "change", hangup},
		{hangup, removed, removed},
		{removed, hangup, removed},
		{removed, "change", removed},
		{"change", removed, removed},
	} {
		if got := (news{reason: tt.was}).and(news{reason: tt.later}); got.reason != tt.want {
			t.Errorf("%s, then %s: %s, want %s", tt.was, tt.later, got.reason, tt.want)
		}
	}
	if got := (news{wanted: 5}).and(news{wanted: 4}); got.wanted != 5 {
		t.Errorf("look %d is wanted: the newer one is lost", got.wanted)
	}
}
