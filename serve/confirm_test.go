package serve_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/serve/cache"
	"xdspub/tools/envoytest"
	"xdspub/xds"
	"xdspub/xds/quorum"
)

// robot is a client that asks for all clusters and listeners, and answers by itself.
type robot struct {
	*clientTo
	mu  sync.Mutex
	has map[string]string // the accepted resources, by type
}

// verdict returns why a robot rejects the resources of a response, "" if the robot accepts them, and silent
// if it doesn't answer.
type verdict func(api string, names []string) string

const silent = "-"

func takes(string, []string) string { return "" }

// rejects returns the verdict of a client that rejects each response with a name.
func rejects(name string) verdict {
	return func(_ string, names []string) string {
		if slices.Contains(names, name) {
			return "no " + name + " here"
		}
		return ""
	}
}

func newRobot(t *testing.T, socket, node string, v verdict) *robot {
	r := &robot{clientTo: openAt(t, dialTo(t, socket), node, adsMethod), has: make(map[string]string)}
	r.ask(xds.Cluster)
	r.ask(xds.Listener)
	go func() {
		for {
			m := &discoveryv3.DiscoveryResponse{}
			if r.stream.RecvMsg(m) != nil {
				return
			}
			var names []string
			for _, any := range m.GetResources() {
				names = append(names, nameOf(t, any))
			}
			api := xds.TypeOfURL(m.GetTypeUrl()).API
			words := v(api, names)
			if words == silent {
				continue
			}
			if words == "" {
				r.mu.Lock()
				r.has[api] = strings.Join(names, " ")
				r.mu.Unlock()
			}
			if r.last = m; r.reply(words) != nil {
				return
			}
		}
	}()
	return r
}

// runs waits until the robot has accepted resources of a type.
func (r *robot) runs(api, want string) {
	r.t.Helper()
	envoytest.Eventually(r.t, patience, "the client runs "+want, func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.has[api] == want, r.has[api]
	})
}

func quorumOf(t *testing.T, text string) quorum.Quorum {
	t.Helper()
	q, err := quorum.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestConfirm checks that a snapshot is taken back from all clients if the quorum can't be met, and otherwise
// from none.
func TestConfirm(t *testing.T) {
	for _, test := range []struct {
		name, quorum string
		clients      []verdict
		before, then string
		answers      string // Concerned, Acknowledged, Rejected, and what happens
	}{
		{"all take it", "all", []verdict{takes, takes}, "c/blue", "c/blue c/green", "2 2 0"},
		{"one of two rejects it", "all", []verdict{takes, rejects("green")}, "c/blue", "c/blue c/green", "2 ? 1 refused, taken back"},
		{"one of two rejects it, any is enough", "any", []verdict{takes, rejects("green")}, "c/blue", "c/blue c/green", "2 1 ?"},
		{"both reject it, any is enough", "any", []verdict{rejects("green"), rejects("green")}, "c/blue", "c/blue c/green", "2 0 2 refused, taken back"},
		{"one of three rejects it, two are enough", "2", []verdict{takes, takes, rejects("green")}, "c/blue", "c/blue c/green", "3 2 ?"},
		{"two of three reject it, two are needed", "2", []verdict{takes, rejects("green"), rejects("green")}, "c/blue", "c/blue c/green", "3 ? 2 refused, taken back"},
		{"more are needed than there are", "5", []verdict{takes, rejects("green")}, "c/blue", "c/blue c/green", "2 ? 1 refused, taken back"},
		{"a listener is gone", "all", []verdict{func(api string, names []string) string {
			if api == "LDS" && len(names) == 1 {
				return "can't remove other"
			}
			return ""
		}}, "l/in l/other", "l/in", "1 0 1 refused, taken back"},
		{"nobody is there", "all", nil, "c/blue", "c/green", "0 0 0"},
		{"nobody is concerned", "all", []verdict{rejects("none")}, "c/blue e/blue", "c/blue e/blue@2", "0 0 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := cache.New(cache.Options{})
			socket := listen(t, c)
			publishTo(t, c, strings.Fields(test.before)...)
			var robots []*robot
			for i, v := range test.clients {
				robots = append(robots, newRobot(t, socket, fmt.Sprint("edge-", i), v))
			}
			quiet(t, c, len(robots))
			a, err := c.Confirm(t.Context(), snapshot(t, strings.Fields(test.then)), cache.Confirmation{Quorum: quorumOf(t, test.quorum), Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			is := fmt.Sprintf("%d %d %d", a.Concerned, a.Acknowledged, a.Rejected)
			if a.Refused {
				is += " refused"
			}
			if a.TakenBack {
				is += ", taken back"
			}
			if !like(is, test.answers) {
				t.Errorf("%s, want %s", is, test.answers)
			}
			if a.Refused && (len(a.Findings) != 1 || a.Findings[0].Code != "refused-by-client") {
				t.Errorf("findings %v", a.Findings)
			}
			// In the end all clients have the snapshot before, or the clients that accept the new snapshot
			// have the new snapshot.
			quiet(t, c, len(robots))
			want := test.then
			if a.TakenBack {
				want = test.before
			}
			for i, r := range robots {
				if test.clients[i]("CDS", []string{"green"}) == "" || a.TakenBack {
					if list := strings.Fields(want); strings.HasPrefix(want, "c/") {
						r.runs("CDS", clustersOf(list))
					} else {
						r.runs("LDS", strings.ReplaceAll(want, "l/", ""))
					}
				}
			}
		})
	}
}

// clustersOf returns the clusters among the words of a snapshot.
func clustersOf(words []string) string {
	var names []string
	for _, word := range words {
		if name, ok := strings.CutPrefix(word, "c/"); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// like reports whether two texts have equal words; ? equals any word.
func like(is, want string) bool {
	a, b := strings.Fields(is), strings.Fields(want)
	return slices.EqualFunc(a, b, func(a, b string) bool { return a == b || b == "?" })
}

// quiet waits until n clients have answered all their responses.
func quiet(t *testing.T, c *cache.Cache, n int) {
	t.Helper()
	envoytest.Eventually(t, patience, "all clients have answered", func() (bool, string) {
		list := c.Clients()
		text := textOf(list)
		return len(list) == n && strings.Count(text, "CDS") == n && strings.Count(text, "LDS") == n && !strings.Contains(text, "STALE"), text
	})
}

// TestConfirmFindings checks that clients with the same reason share a finding, which has the position of the
// resource.
func TestConfirmFindings(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	publishTo(t, c, "c/blue")
	for i := range 3 {
		newRobot(t, socket, fmt.Sprint("edge-", i), rejects("green"))
	}
	quiet(t, c, 3)
	a, err := c.Confirm(t.Context(), snapshot(t, []string{"c/blue", "c/green"}), cache.Confirmation{Quorum: quorumOf(t, "any"), Timeout: time.Minute})
	if err != nil || !a.Refused || len(a.Findings) != 1 {
		t.Fatal(a, err)
	}
	text := a.Findings[0].String()
	if !strings.HasPrefix(text, `tree.yaml:3:1: error: client "edge-`) || !strings.HasSuffix(text, ` rejected CDS "green": no green here (and 2 more clients) [refused-by-client]`) {
		t.Error(text)
	}
}

// TestSilenceIsNoRefusal checks that a snapshot stays if clients don't answer or disconnect.
func TestSilenceIsNoRefusal(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	publishTo(t, c, "c/blue")
	heard := make(chan struct{})
	r := newRobot(t, socket, "edge", func(_ string, names []string) string {
		if slices.Contains(names, "green") {
			heard <- struct{}{}
			return silent
		}
		return ""
	})
	quiet(t, c, 1)
	confirm := func(timeout time.Duration, words ...string) chan cache.Answers {
		done := make(chan cache.Answers, 1)
		go func() {
			a, err := c.Confirm(t.Context(), snapshot(t, words), cache.Confirmation{Timeout: timeout})
			if err != nil {
				t.Error(err)
			}
			done <- a
		}()
		<-heard
		return done
	}
	if a := <-confirm(100*time.Millisecond, "c/blue", "c/green"); a.Refused || a.TakenBack || a.Concerned != 1 || a.Acknowledged != 0 {
		t.Errorf("%+v", a)
	}
	r.end()
	eventually(t, c, "edge ads gone, CDS STALE, LDS SYNCED")
	r = newRobot(t, socket, "edge", func(_ string, names []string) string {
		if slices.Contains(names, "green@2") {
			heard <- struct{}{}
			return silent
		}
		return ""
	})
	quiet(t, c, 1)
	done := confirm(time.Minute, "c/blue", "c/green@2")
	r.end()
	if a := <-done; a.Refused || a.Concerned != 0 {
		t.Errorf("%+v", a)
	}
}

// TestFirstSnapshotStays checks that the first snapshot stays after a rejection.
func TestFirstSnapshotStays(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	newRobot(t, socket, "edge", rejects("green"))
	eventually(t, c, "edge ads, CDS NOT SENT, LDS NOT SENT")
	a, err := c.Confirm(t.Context(), snapshot(t, []string{"c/green"}), cache.Confirmation{Timeout: time.Minute})
	if err != nil || !a.Refused || a.TakenBack {
		t.Fatal(a, err)
	}
	eventually(t, c, "edge ads, CDS REJECTED, LDS SYNCED")
}

// TestOldRefusalIsNoAnswer checks that a client that rejects an unchanged resource again doesn't reject a
// later snapshot.
func TestOldRefusalIsNoAnswer(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	publishTo(t, c, "c/blue", "c/green")
	newRobot(t, socket, "edge", rejects("green"))
	eventually(t, c, "edge ads, CDS REJECTED, LDS SYNCED")
	a, err := c.Confirm(t.Context(), snapshot(t, []string{"c/blue@2", "c/green"}), cache.Confirmation{Timeout: time.Minute})
	if err != nil || a.Refused || a.Acknowledged != 1 {
		t.Fatal(a, err)
	}
}

// TestConfirmEnds checks that the end of the context ends the wait, and that the snapshot stays.
func TestConfirmEnds(t *testing.T) {
	c := cache.New(cache.Options{})
	socket := listen(t, c)
	publishTo(t, c, "c/blue")
	ctx, cancel := context.WithCancel(t.Context())
	newRobot(t, socket, "edge", func(_ string, names []string) string {
		if slices.Contains(names, "green") {
			cancel()
			return silent
		}
		return ""
	})
	quiet(t, c, 1)
	if a, err := c.Confirm(ctx, snapshot(t, []string{"c/green"}), cache.Confirmation{Timeout: time.Minute}); err != context.Canceled || a.TakenBack {
		t.Fatal(a, err)
	}
}

// TestLateQuorum checks that answers after the Timeout count until the next Publish.
func TestLateQuorum(t *testing.T) {
	for name, test := range map[string]struct {
		answer string // of the late client, "" for an ACK
		then   func(t *testing.T, c *cache.Cache, release chan struct{})
		want   bool
	}{
		"an ACK": {then: func(_ *testing.T, _ *cache.Cache, release chan struct{}) { close(release) }, want: true},
		"a NACK": {answer: "no green here", then: func(_ *testing.T, _ *cache.Cache, release chan struct{}) { close(release) }},
		"the same Snapshot, a Retry": {answer: silent, then: func(t *testing.T, c *cache.Cache, _ chan struct{}) {
			if err := c.Retry(t.Context()); err != nil {
				t.Error(err)
			}
			a, err := c.Confirm(t.Context(), snapshot(t, []string{"c/blue", "c/green"}), cache.Confirmation{})
			if err != nil || a.Confirmed || !a.Unchanged {
				t.Error(a, err)
			}
			publishTo(t, c, "c/blue")
		}},
		"a Retry, a NACK": {answer: "no green here", then: func(t *testing.T, c *cache.Cache, release chan struct{}) {
			if err := c.Retry(t.Context()); err != nil {
				t.Error(err)
			}
			close(release)
		}},
		"a Retry, an ACK": {then: func(t *testing.T, c *cache.Cache, release chan struct{}) {
			if err := c.Retry(t.Context()); err != nil {
				t.Error(err)
			}
			close(release)
		}, want: true},
		"the next Publish": {then: func(t *testing.T, c *cache.Cache, _ chan struct{}) { publishTo(t, c, "c/blue", "c/red") }},
	} {
		t.Run(name, func(t *testing.T) {
			c := cache.New(cache.Options{})
			socket := listen(t, c)
			publishTo(t, c, "c/blue")
			release := make(chan struct{})
			newRobot(t, socket, "edge", func(_ string, names []string) string {
				if slices.Contains(names, "green") {
					select {
					case <-release:
					case <-t.Context().Done():
					}
					return test.answer
				}
				return ""
			})
			quiet(t, c, 1)
			if c.AwaitLate().Confirmed {
				t.Error("AwaitLate before Confirm returns true")
			}
			a, err := c.Confirm(t.Context(), snapshot(t, []string{"c/blue", "c/green"}), cache.Confirmation{Timeout: 50 * time.Millisecond})
			if err != nil || a.Confirmed || a.Refused {
				t.Fatal(a, err)
			}
			late := make(chan bool)
			go func() { late <- c.AwaitLate().Confirmed }()
			test.then(t, c, release)
			select {
			case is := <-late:
				if is != test.want {
					t.Errorf("AwaitLate returns %v", is)
				}
			case <-time.After(patience):
				t.Error("AwaitLate does not return")
			}
		})
	}
}
