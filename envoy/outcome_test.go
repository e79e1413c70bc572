package envoy

import "testing"

func TestOutcomeString(t *testing.T) {
	states := func(list ...State) (all []Status) {
		for _, s := range list {
			all = append(all, Status{Subscription: Subscription{API: "RDS", Name: "web"}, State: s})
		}
		return all
	}
	for _, c := range []struct {
		o    Outcome
		want string
	}{
		{Outcome{Verdict: Confirmed, Answering: 1, Envoys: []EnvoyOutcome{{URL: "unix:a", States: states(Acked)}}}, "confirmed: 1 of 1 Envoys acknowledged it"},
		{
			Outcome{Verdict: RefusedByQuorum, Answering: 2, Envoys: []EnvoyOutcome{
				{URL: "unix:a", States: states(Acked, Refused, Pending)},
				{URL: "unix:b", States: []Status{}},
				{URL: "unix:c", Err: &DownError{URL: "unix:c", Err: errNoSocket{}}},
			}},
			"refused: 1 of 3 Envoys acknowledged it; envoy unix:a: RDS web REJECTED, RDS web STALE; envoy unix:c: is down: no such socket",
		},
		{
			Outcome{Verdict: Confirmed, Answering: 1, Envoys: []EnvoyOutcome{{URL: "unix:a", States: states(Acked), NotWarm: []string{"a", "b", "c", "d", "e", "f", "g"}}}},
			"confirmed: 1 of 1 Envoys acknowledged it; envoy unix:a: not warm: a, b, c, d, e and 2 more",
		},
	} {
		if got := c.o.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

type errNoSocket struct{}

func (errNoSocket) Error() string { return "no such socket" }
