package hook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/observe/hook"
)

// check returns a Check that must end within a time.
func check(t *testing.T, text string, within time.Duration) *hook.Check {
	t.Helper()
	c, err := hook.ParseCheck(text, hook.Options{Times: hook.Times{Timeout: within, Grace: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// within returns a short time for a check that does not end, and a long time for any other check.
func within(want string) time.Duration {
	if strings.Contains(want, "within") {
		return 200 * time.Millisecond
	}
	return time.Minute
}

// TestParseCheck: what is wrong with a check is said without the URL.
func TestParseCheck(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "write CMD, a program and its arguments",
		"no-such-program":                 "no program",
		"sh -c 'x":                        "the quote ' has no end",
		"http://prometheus/":              "write the URL of a query as http://HOST/api/v1/query?query=EXPRESSION",
		"http://prometheus/api/v1/query":  "write the URL of a query",
		"http:///api/v1/query?query=up":   "write the URL of a query",
		"http://p/api/v1/query?query=a#b": "%23 for a #",
		"http://p/api/v1/query?query=a%z": "%25 for a %",
	} {
		if _, err := hook.ParseCheck(text, hook.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if c := check(t, "http://me:secret@p:1/api/v1/query?query=up == 0", time.Minute); c.String() != "http://p:1" {
		t.Error(c)
	}
}

// TestCheckProgram: a program fails by its exit status; a program that hangs, or that a signal ends, can't tell. The
// output of a program is bounded.
func TestCheckProgram(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(gone, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	removed := check(t, gone, time.Minute)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, run string
		failed    bool
		want      string // empty if the check passes
	}{
		{"passes", "cat >/dev/null", false, ""},
		{"reads", `read line; case $line in *candidate*) ;; *) exit 1;; esac`, false, ""},
		{"fails", "echo too many errors; exit 3", true, "exit status 3; it said: too many errors"},
		{"hangs", "sleep 1000 & wait", false, "the program did not end within 200ms, and was killed"},
		{"is killed", "kill -9 $$", false, "signal: killed"},
		{"prints without end", "cat /dev/zero", false, "the program did not end within 200ms, and was killed"},
		{"prints much", "head -c 20000000 /dev/zero | tr '\\0' x; exit 1", true, "exit status 1; it said: xxx"},
	} {
		failed, err := check(t, fmt.Sprintf("sh -c \"%s\"", c.run), within(c.want)).Run(t.Context(), []byte(`{"snapshot":"candidate"}`))
		if failed != c.failed || (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 4000) {
			t.Errorf("%s: %t, %.200v", c.name, failed, err)
		}
	}
	if failed, err := removed.Run(t.Context(), nil); failed || err == nil {
		t.Errorf("a program that is gone: %t, %v", failed, err)
	}
}

// TestCheckQuery: a query fails by having a result; garbage, an error, silence and a flood can't tell.
func TestCheckQuery(t *testing.T) {
	const vector = `{"status":"success","data":{"resultType":"vector","result":[%s]}}`
	flood := strings.Repeat("x", 1<<16)
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		failed bool
		want   string
	}{
		{"no series", text(200, fmt.Sprintf(vector, "")), false, ""},
		{"a series", text(200, fmt.Sprintf(vector, `{"metric":{"code":"503","job":"web"},"value":[1,"12.5"]}`)), true, `the query has a result: {code="503",job="web"} 12.5`},
		{"scalar 0", text(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}`), false, ""},
		{"scalar 2", text(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), true, "the result of the query is 2"},
		{"NaN", text(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]}}`), false, "is NaN"},
		{"matrix", text(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), false, "neither a vector nor a scalar"},
		{"garbage", text(200, "<html>"), false, "the answer is not that of a Prometheus"},
		{"nothing", text(204, ""), false, "the answer is not that of a Prometheus"},
		{"wrong query", text(400, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected )"}`), false, "the Prometheus refuses the query: parse error: unexpected )"},
		{"down", text(503, "down"), false, "the server answers 503"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, false, "follows no redirect"},
		{"silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false, "no answer within 200ms"},
		{"2 GB", func(w http.ResponseWriter, _ *http.Request) {
			for range 2 << 30 >> 16 {
				if _, err := io.WriteString(w, flood); err != nil {
					return
				}
			}
		}, false, "the answer has more than 1048576 bytes"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v1/query" && r.FormValue("query") != `rate(errors{code="5xx"}[1m]) > 1` {
				t.Errorf("%s: %s", c.name, r.URL)
			}
			c.answer(w, r)
		}))
		failed, err := check(t, s.URL+`/api/v1/query?query=rate(errors{code="5xx"}[1m]) > 1`, within(c.want)).Run(t.Context(), nil)
		s.CloseClientConnections()
		s.Close()
		if failed != c.failed || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %t, %v", c.name, failed, err)
		}
	}
}

// text returns an answer.
func text(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
