package envoy

import (
	"testing"
	"time"

	"xdspub/xds/quorum"
)

func TestJudge(t *testing.T) {
	// reading returns an observation with attempts, successes, rejections and failures of the stat prefix r.
	reading := func(boot Incarnation, version string, counters ...uint64) *Observation {
		return &Observation{Incarnation: boot, Counters: map[string]Counters{"r": {counters[0], counters[1], counters[2], counters[3], version}}}
	}
	none := func(boot Incarnation) *Observation {
		return &Observation{Incarnation: boot, Counters: map[string]Counters{}}
	}
	one := []Subscription{{Version: "v2", StatPrefixes: []string{"r"}}}
	for _, c := range []struct {
		name      string
		base, now *Observation
		subs      []Subscription
		want      State
	}{
		{"nothing moved", reading("a", "v1", 1, 1, 0, 0), reading("a", "v1", 1, 1, 0, 0), one, Pending},
		{"read and not yet taken", reading("a", "v1", 1, 1, 0, 0), reading("a", "v1", 2, 1, 0, 0), one, Pending},
		{"taken", reading("a", "v1", 1, 1, 0, 0), reading("a", "v2", 2, 2, 0, 0), one, Acked},
		{"another version taken", reading("a", "v1", 1, 1, 0, 0), reading("a", "v3", 2, 2, 0, 0), one, Pending},
		{"the version is old news", reading("a", "v2", 3, 2, 1, 0), reading("a", "v2", 3, 2, 1, 0), one, Pending},
		{"undone to the version that it shows anyway", reading("a", "v2", 3, 2, 1, 0), reading("a", "v2", 4, 3, 1, 0), one, Acked},
		{"rejected", reading("a", "v1", 1, 1, 0, 0), reading("a", "v1", 2, 1, 1, 0), one, Refused},
		{"failed", reading("a", "v1", 1, 1, 0, 0), reading("a", "v1", 2, 1, 0, 1), one, Refused},
		{"rejected and then taken", reading("a", "v1", 1, 1, 0, 0), reading("a", "v2", 3, 2, 1, 0), one, Refused},
		{"taken, and rejected by the process before it", reading("a", "v1", 1, 1, 0, 0), restarted(reading("a", "v2", 3, 2, 1, 0)), one, Acked},
		{"rejected, and taken by the process before it", reading("a", "v1", 1, 1, 0, 0), restarted(reading("a", "v1", 3, 2, 1, 0)), one, Refused},
		{"undone, and rejected by one of both", reading("a", "v2", 3, 2, 1, 0), restarted(reading("a", "v2", 5, 3, 2, 0)), one, Refused},
		{"rejected before the rename", reading("a", "v1", 3, 1, 2, 0), reading("a", "v2", 4, 2, 2, 0), one, Acked},
		{"comes with the step", none("a"), reading("a", "v2", 1, 1, 0, 0), one, Acked},
		{"comes with the step and is refused", none("a"), reading("a", "", 1, 0, 1, 0), one, Refused},
		{"not there", none("a"), none("a"), one, Pending},
		{"not there, and there is a stats_matcher", none("a"), &Observation{Incarnation: "a", Matcher: true}, one, StatsExcluded},
		{"restarted, same counts", reading("a", "v1", 1, 1, 0, 0), reading("b", "v2", 1, 1, 0, 0), one, Acked},
		{"restarted before the rename", reading("a", "v1", 1, 1, 0, 0), reading("b", "v1", 1, 1, 0, 0), one, Pending},
		{"restarted and refused at the start", reading("a", "v1", 2, 1, 1, 0), reading("b", "", 1, 0, 1, 0), one, Refused},
		{"restarted, refused what lay there and took the file", reading("a", "v1", 1, 1, 0, 0), reading("b", "v2", 2, 1, 1, 0), one, Acked},
		{"started in the middle", nil, reading("a", "v2", 1, 1, 0, 0), one, Acked},
		{"gone with its cluster and back", reading("a", "v1", 5, 5, 0, 0), reading("a", "v2", 1, 1, 0, 0), one, Acked},
		{"stands, and is what was read before", reading("a", "v2", 3, 2, 1, 0), reading("a", "v2", 3, 2, 1, 0), []Subscription{{Version: "v2", StatPrefixes: []string{"r"}, Unmoved: true}}, Acked},
		{"stands, and something else is read", reading("a", "v1", 1, 1, 0, 0), reading("a", "v1", 1, 1, 0, 0), []Subscription{{Version: "v2", StatPrefixes: []string{"r"}, Unmoved: true}}, Pending},
		{"one of two on a root", reading("a", "v1", 2, 2, 0, 0), reading("a", "v2", 3, 3, 0, 0),
			[]Subscription{{Name: "a:b", Version: "v2", StatPrefixes: []string{"r"}}, {Name: "a_b", Version: "v3", StatPrefixes: []string{"r"}}}, Pending},
		{"two of two on a root", reading("a", "v1", 2, 2, 0, 0), reading("a", "v3", 4, 4, 0, 0),
			[]Subscription{{Name: "a:b", Version: "v2", StatPrefixes: []string{"r"}}, {Name: "a_b", Version: "v3", StatPrefixes: []string{"r"}}}, Acked},
	} {
		for _, s := range statuses(c.base, c.now, c.subs) {
			if s.State != c.want {
				t.Errorf("%s: %v, want %v", c.name, s.State, c.want)
			}
		}
	}
}

func TestJudgeSeveralRoots(t *testing.T) {
	counters := func(attempts, successes uint64, version string) Counters {
		return Counters{Attempts: attempts, Successes: successes, Version: version}
	}
	subs := []Subscription{{Version: "v2", StatPrefixes: []string{"x", "y"}}}
	base := &Observation{Counters: map[string]Counters{"x": counters(1, 1, "v1"), "y": counters(1, 1, "v1")}}
	for _, c := range []struct {
		name string
		x, y Counters
		want State
	}{
		{"neither", counters(1, 1, "v1"), counters(1, 1, "v1"), Pending},
		{"one reports for both", counters(2, 2, "v2"), counters(1, 1, "v1"), Acked},
		{"both report", counters(2, 2, "v2"), counters(2, 2, "v2"), Acked},
		{"one is not done", counters(2, 2, "v2"), counters(2, 1, "v1"), Pending},
		{"the other one has no version yet", counters(2, 2, "v2"), counters(2, 1, ""), Pending},
		{"one refused", counters(2, 2, "v2"), Counters{Attempts: 2, Successes: 1, Rejections: 1, Version: "v1"}, Refused},
	} {
		now := &Observation{Counters: map[string]Counters{"x": c.x, "y": c.y}}
		if got := statuses(base, now, subs)[0].State; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	now := restarted(&Observation{Counters: map[string]Counters{"x": counters(2, 2, "v2"), "y": counters(2, 2, "")}})
	if got := statuses(base, now, subs)[0].State; got != Acked {
		t.Errorf("only the process before it has the other one: %v", got)
	}
}

// restarted returns the observation as that of a process after a hot restart.
func restarted(o *Observation) *Observation {
	o.Epoch = 1
	return o
}

// TestVerdict tries combinations of Envoys. A letter is one Envoy: a acked, r refused, p pending, d down since
// before Begin, s silent since before Begin, u up again and pending, h hanging since the rename, g gone just now, G
// gone for long, x replaced by another program, z unstable, ? down before Begin and not asked again, ! silent
// before Begin and not asked again.
func TestVerdict(t *testing.T) {
	now := time.Unix(1000, 0)
	subs := []Subscription{{Version: "v2", StatPrefixes: []string{"r"}}}
	reading := func(c Counters) *Observation {
		return &Observation{Incarnation: "a", Counters: map[string]Counters{"r": c}}
	}
	before, acked, refused := reading(Counters{1, 1, 0, 0, "v1"}), reading(Counters{2, 2, 0, 0, "v2"}), reading(Counters{2, 1, 1, 0, "v1"})
	admin := new(Admin)
	members := map[rune]peer{
		'a': {base: before, last: acked, heard: true},
		'r': {base: before, last: refused, heard: true},
		'p': {base: before, last: before, heard: true},
		'd': {err: &DownError{}, heard: true},
		's': {err: &TimeoutError{}, heard: true},
		'u': {last: before, heard: true},
		'h': {base: before, err: &TimeoutError{}, since: now.Add(-time.Hour), heard: true},
		'g': {base: before, err: &DownError{}, since: now.Add(-time.Second), heard: true},
		'G': {base: before, err: &DownError{}, since: now.Add(-comeBack), heard: true},
		'x': {base: before, err: &UnexpectedResponseError{}, since: now, heard: true},
		'z': {base: before, last: acked, err: &UnstableError{}, since: now, heard: true},
		'?': {err: &DownError{}},
		'!': {err: &TimeoutError{}},
	}
	for _, c := range []struct{ envoys, all, any, two string }{
		{"a", "confirmed", "confirmed", "confirmed"},
		{"p", "", "", ""},
		{"r", "refused", "refused", "refused"},
		{"aa", "confirmed", "confirmed", "confirmed"},
		{"ap", "", "confirmed", ""},
		{"ar", "refused", "confirmed", "refused"},
		{"rp", "refused", "", "refused"},
		{"rr", "refused", "refused", "refused"},
		{"aar", "refused", "confirmed", "confirmed"},
		{"app", "", "confirmed", ""},
		{"arp", "refused", "confirmed", ""},
		{"arr", "refused", "confirmed", "refused"},
		{"ad", "confirmed", "confirmed", "confirmed"},
		{"as", "confirmed", "confirmed", "confirmed"},
		{"ah", "", "confirmed", ""},
		{"ag", "", "confirmed", ""},
		{"aG", "confirmed", "confirmed", "confirmed"},
		{"ax", "confirmed", "confirmed", "confirmed"},
		{"az", "confirmed", "confirmed", "confirmed"},
		{"au", "", "confirmed", ""},
		{"a?", "", "", ""},
		{"a!", "", "", ""},
		{"d", "unconfirmed", "unconfirmed", "unconfirmed"},
		{"dsGx", "unconfirmed", "unconfirmed", "unconfirmed"},
		{"", "unconfirmed", "unconfirmed", "unconfirmed"},
	} {
		for text, want := range map[string]string{"all": c.all, "any": c.any, "2": c.two} {
			q, err := quorum.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			w := AckWait{fleet: NewFleet(FleetOptions{Quorum: q}), subs: subs}
			for _, letter := range c.envoys {
				p := members[letter]
				p.admin = admin
				p.updateStatuses(subs, "")
				w.peers = append(w.peers, &p)
			}
			got := ""
			if v, over := w.verdict(now); over {
				got = v.String()
			}
			if got != want {
				t.Errorf("%s of %q: %q, want %q", text, c.envoys, got, want)
			}
		}
	}
}
