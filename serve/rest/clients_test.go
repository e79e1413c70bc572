package rest_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xdspub/serve/cache"
	"xdspub/xds/clients"
	"xdspub/xds/quorum"
)

// shown returns the clients, with the status of each subscription, as text.
func (s *server) shown() string {
	var text []string
	for _, c := range s.cache.Clients() {
		line := fmt.Sprintf("%s (%s %s)", c.Node, c.Kind, c.UserAgent)
		if !c.Gone.IsZero() {
			line += " gone"
		}
		for _, sub := range c.Subscriptions {
			line += fmt.Sprintf(", %s %s", sub.API, sub.Sync)
			if !sub.All {
				line += fmt.Sprint(" ", sub.Asked, sub.Names)
			}
			if sub.Refusal != nil {
				line += fmt.Sprintf(" x%d %s", sub.Rejections, sub.Refusal.Findings)
			}
		}
		text = append(text, line)
	}
	return strings.Join(text, "; ")
}

func (s *server) shows(want string) {
	s.Helper()
	if is := s.shown(); is != want {
		s.Errorf("shown are\n%s, want\n%s", is, want)
	}
}

const node140 = `"node": {"id": "edge", "cluster": "c", "user_agent_name": "envoy", "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 40}}}`

// TestClients checks the status of a REST client, which counts as connected as long as it sends requests.
func TestClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		versions := make(map[string]string)
		ask := func(path, names, want string) {
			t.Helper()
			key := path + names
			told, version := s.ask(path, `{`+node140+`, "resource_names": [`+names+`], "version_info": "`+versions[key]+`"}`, time.Second)
			if told != want {
				t.Errorf("%s %s: %s, want %s", path, names, told, want)
			}
			if version != "" {
				versions[key] = version
			}
		}
		ask("clusters", "", "503")
		s.shows("edge (rest envoy 1.40.0), CDS NOT SENT")
		s.publish("c/a", "e/a", "l/in")
		ask("clusters", "", "a")
		s.shows("edge (rest envoy 1.40.0), CDS STALE")
		ask("clusters", "", "304")
		ask("endpoints", `"a"`, "a")
		ask("endpoints", `"a"`, "304")
		ask("endpoints", `"b"`, "304")
		ask("runtime", `"x"`, "304")
		s.shows("edge (rest envoy 1.40.0), RTDS NOT SENT 1 [x], CDS SYNCED, EDS SYNCED 2 [a b]")
		if c := s.cache.Clients()[0]; c.Cluster != "c" || c.Address != "192.0.2.1" || !c.InSync() || c.Subscriptions[1].Acknowledged != versions["clusters"] || c.Subscriptions[1].Version != versions["clusters"] {
			t.Errorf("%+v", c)
		}
		if told, _ := s.ask("clusters", `{}`, 0); told != "a" { // without a node id
			t.Error(told)
		}

		// After a change of another resource of the type, the client is STALE until its next request.
		s.publish("c/a", "e/a", "e/z", "l/in")
		s.shows("edge (rest envoy 1.40.0), RTDS NOT SENT 1 [x], CDS SYNCED, EDS STALE 2 [a b]")
		ask("endpoints", `"a"`, "304")
		s.shows("edge (rest envoy 1.40.0), RTDS NOT SENT 1 [x], CDS SYNCED, EDS SYNCED 2 [a b]")

		time.Sleep(119 * time.Second)
		s.shows("edge (rest envoy 1.40.0), RTDS NOT SENT 1 [x], CDS SYNCED, EDS SYNCED 2 [a b]")
		time.Sleep(2 * time.Second)
		s.shows("edge (rest envoy 1.40.0) gone, RTDS NOT SENT 1 [x], CDS SYNCED, EDS SYNCED 2 [a b]")
		ask("clusters", "", "304")
		s.shows("edge (rest envoy 1.40.0), CDS SYNCED")
		time.Sleep(3 * time.Minute)
		s.shows("edge (rest envoy 1.40.0) gone, CDS SYNCED")
		time.Sleep(time.Hour)
		s.shows("")
	})
}

// TestRejected checks that the status and the log have the rejections of a REST client, and that Retry sends
// a rejected response again.
func TestRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("l/a", "c/a")
		ask := func(version, more, want string) string {
			t.Helper()
			told, is := s.ask("listeners", `{`+node140+`, "version_info": "`+version+`"`+more+`}`, time.Second)
			if told != want {
				t.Errorf("asks with version %q: %s, want %s", version, told, want)
			}
			return is
		}
		v1 := ask("", "", "a")
		ask(v1, "", "304")
		s.publish("l/a", "l/bad", "c/a")
		ask(v1, "", "a bad")
		s.shows("edge (rest envoy 1.40.0), LDS STALE")
		time.Sleep(time.Second)
		told := make(chan string)
		go func() {
			is, _ := s.ask("listeners", `{`+node140+`, "version_info": "`+v1+`"}`, 30*time.Second)
			told <- is
		}()
		synctest.Wait()
		silent := `: error: client "edge" rejected LDS: over REST Envoy gives no reason: it repeats its request with its old version; see the reason in its log [refused-by-client]`
		s.shows("edge (rest envoy 1.40.0), LDS REJECTED x1 [" + strings.TrimPrefix(silent, ": ") + "]")
		began := time.Now()
		if err := s.cache.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := <-told; is != "a bad" || time.Since(began) != 0 {
			t.Error("after Retry:", is, time.Since(began))
		}
		ask(v1, `, "error_detail": {"message": "in listener 'bad': no such port"}`, "304")
		s.shows(`edge (rest envoy 1.40.0), LDS REJECTED x2 [tree.yaml:2:3: error: client "edge" rejected LDS "bad": in listener 'bad': no such port [refused-by-client]]`)
		s.publish("l/a", "c/a", "c/b")
		ask(v1, "", "304")
		s.shows("edge (rest envoy 1.40.0), LDS SYNCED")
		if n := strings.Count(s.log.String(), "response-rejected"); n != 1 {
			t.Error(s.log.String())
		}
		if r := s.cache.Rejections(); len(r) != 1 || r[0] != (clients.Rejections{Node: "edge", API: "LDS", Count: 2}) {
			t.Error(r)
		}
		s.publish("l/a", "l/bad", "c/a")
		ask(v1, "", "a bad")
		ask(v1, `, "error_detail": {"message": "in listener 'bad': no such port"}`, "304")
		if n := strings.Count(s.log.String(), "response-rejected"); n != 2 {
			t.Error("after another one was taken:", s.log.String())
		}
	})
}

// TestConfirmedByREST checks that a REST client confirms a version by repeating its request with the version.
// A client rejects a version by a reason or, as an Envoy, by repeating the old version. Clients that have
// left or are nameless don't count.
func TestConfirmedByREST(t *testing.T) {
	all, err := quorum.Parse("all")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		reply string // the answer; the two %s are the client's old and new version
		after time.Duration
		want  cache.Answers
	}{
		"taken":           {`, "version_info": "%[2]s"`, time.Second, cache.Answers{Concerned: 1, Acknowledged: 1, Confirmed: true}},
		"a reason":        {`, "version_info": "%[1]s", "error_detail": {"message": "in listener 'b': no such port"}`, 0, cache.Answers{Concerned: 1, Rejected: 1, Refused: true, TakenBack: true}},
		"silence":         {`, "version_info": "%[1]s"`, time.Second, cache.Answers{Concerned: 1, Rejected: 1, Refused: true, TakenBack: true}},
		"a lost response": {`, "version_info": "%[1]s"`, time.Second, cache.Answers{Concerned: 1, Acknowledged: 1, Confirmed: true}},
		"nothing":         {"", time.Minute, cache.Answers{Concerned: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				s.publish("l/a", "c/a")
				ask := func(path, more string) (told, version string) {
					return s.ask(path, `{`+node140+more+`}`, 30*time.Second)
				}
				_, had := ask("listeners", "")
				ask("clusters", "")
				s.ask("listeners", `{"node": {"id": "gone"}}`, time.Second)
				s.ask("listeners", `{}`, time.Second)
				time.Sleep(3 * time.Minute)
				ask("clusters", "")

				said := make(chan cache.Answers)
				waits := make(chan string)
				go func() {
					told, is := ask("listeners", fmt.Sprintf(`, "version_info": %q`, had))
					if told != "a b" {
						t.Error(told)
					}
					waits <- is
				}()
				synctest.Wait()
				go func() {
					a, err := s.cache.Confirm(t.Context(), s.snapshot("l/a", "l/b", "c/a"), cache.Confirmation{Quorum: all})
					if err != nil {
						t.Error(err)
					}
					said <- a
				}()
				is := <-waits
				time.Sleep(tt.after)
				ended := make(chan struct{})
				go func() { // a waiting request confirms the old snapshot
					defer close(ended)
					for told := "a b"; tt.reply != "" && told == "a b"; {
						told, _ = ask("listeners", fmt.Sprintf(tt.reply, had, is))
						if name == "a lost response" {
							had = is
						}
						time.Sleep(time.Second)
					}
				}()
				a := <-said
				if found := fmt.Sprint(a.Findings); (len(a.Findings) == 1) != tt.want.Refused || strings.Contains(tt.reply, "no such port") && !strings.Contains(found, `tree.yaml:2:3: error: client "edge" rejected LDS "b": in listener 'b'`) {
					t.Errorf("findings: %s", found)
				}
				if a.Findings = nil; !reflect.DeepEqual(a, tt.want) {
					t.Errorf("%+v, want %+v", a, tt.want)
				}
				s.handler.EndWaits()
				<-ended
			})
		})
	}
}

// TestManyClients checks that the memory for REST clients is bounded, for many clients and for large names
// and requests.
func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("c/a")
		long := strings.Repeat("x", 1100)
		for i := range 1500 {
			s.do(request(t.Context(), "endpoints", fmt.Sprintf(`{"node": {"id": "one"}, "resource_names": ["%d"]}`, i), time.Millisecond))
		}
		if list := s.cache.Clients(); len(list) != 1 || list[0].Subscriptions[0].Asked != 1000 || len(list[0].Subscriptions[0].Names) != clients.MostNames {
			t.Errorf("%d clients, %+v", len(list), list)
		}
		before := heap()
		for i := range 10_500 {
			s.do(request(t.Context(), "clusters", fmt.Sprintf(`{"node": {"id": "%d%s", "cluster": "%[2]s", "user_agent_name": "%[2]s"}, "resource_names": ["a", "%[2]s"]}`, i, long), time.Millisecond))
		}
		each := (heap() - before) / 10_000
		if t.Logf("%d bytes a client", each); each > 10<<10 {
			t.Error("that is too much")
		}
		connected := 0
		list := s.cache.Clients()
		for _, c := range list {
			if c.Gone.IsZero() {
				connected++
			}
		}
		if connected != 10_000 || len(list) != 10_501 {
			t.Errorf("%d of %d clients are connected", connected, len(list))
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRejectedAfterRetry: a client that had rejected the Snapshot before rejects a new resource late, after a Retry.
// The rejection counts: the client does not only repeat its old rejection.
func TestRejectedAfterRetry(t *testing.T) {
	all, err := quorum.Parse("all")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		names string // the resource in the reason
		want  cache.Answers
	}{
		"a new resource":    {"worse", cache.Answers{Concerned: 1, Rejected: 1, Refused: true}},
		"only the old ones": {"bad", cache.Answers{Concerned: 1, Acknowledged: 1, Confirmed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				s.publish("l/a", "c/a")
				ask := func(version, reason, want string) string {
					t.Helper()
					q := `{` + node140 + `, "version_info": "` + version + `"`
					if reason != "" {
						q += `, "error_detail": {"message": "in listener '` + reason + `': no such port"}`
					}
					told, is := s.ask("listeners", q+`}`, time.Second)
					if told != want {
						t.Errorf("asks with version %q and %q: %s, want %s", version, reason, told, want)
					}
					return is
				}
				v1 := ask("", "", "a")
				ask(v1, "", "304")
				s.publish("l/a", "l/bad", "c/a")
				ask(v1, "", "a bad")
				ask(v1, "bad", "304")
				a, err := s.cache.Confirm(t.Context(), s.snapshot("l/a", "l/bad", "l/worse", "c/a"), cache.Confirmation{Quorum: all, Timeout: time.Second})
				if err != nil || a.Confirmed || a.Refused {
					t.Fatalf("%+v, %v", a, err)
				}
				ask(v1, "", "a bad worse")
				if err := s.cache.Retry(t.Context()); err != nil {
					t.Fatal(err)
				}
				ask(v1, c.names, "a bad worse") // about the response before the Retry
				ask(v1, c.names, "304")
				a = s.cache.AwaitLate()
				if found := fmt.Sprint(a.Findings); (len(a.Findings) > 0) != a.Refused || a.Refused && !strings.Contains(found, c.names) {
					t.Error(found)
				}
				if a.Findings = nil; !reflect.DeepEqual(a, c.want) {
					t.Errorf("%+v, want %+v", a, c.want)
				}
			})
		})
	}
}
