package envoytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// adminClient returns a client of the admin interface at an address: IP:PORT, or the path of a Unix socket, as in
// the file of --admin-address-path.
func adminClient(address string) *http.Client {
	network := "unix"
	if _, err := netip.ParseAddrPort(address); err == nil {
		network = "tcp"
	}
	return &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, address)
			},
		},
	}
}

func (e *Envoy) ask(method, path string) (status int, body string, err error) {
	request, err := http.NewRequest(method, "http://envoy-admin"+path, nil)
	if err != nil {
		return 0, "", err
	}
	return do(e.admin, request)
}

// do sends a request, and reads the whole body of the answer.
func do(client *http.Client, request *http.Request) (status int, body string, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}

// Admin returns the answer of the admin interface to a GET of a path, such as "/clusters". Any status but 200 ends
// the test.
func (e *Envoy) Admin(t testing.TB, path string) string {
	t.Helper()
	return e.must(t, http.MethodGet, path)
}

// AdminPost is Admin for a POST, which changes Envoy, such as "/runtime_modify?k=v".
func (e *Envoy) AdminPost(t testing.TB, path string) string {
	t.Helper()
	return e.must(t, http.MethodPost, path)
}

func (e *Envoy) must(t testing.TB, method, path string) string {
	t.Helper()
	status, body, err := e.ask(method, path)
	if err != nil {
		t.Fatalf("Envoy's admin interface: %v", err)
	}
	if status != http.StatusOK {
		t.Fatalf("Envoy's admin interface: %s %s: status %d: %s", method, path, status, body)
	}
	return body
}

// Stats returns the counters, gauges and texts whose name the regular expression
// matches anywhere; "" matches all. Histograms are left out.
func (e *Envoy) Stats(t testing.TB, filter string) map[string]string {
	t.Helper()
	body := e.Admin(t, "/stats?format=json&filter="+url.QueryEscape(filter))
	var answer struct {
		Stats []struct {
			Name  string // empty for the entry of the histograms
			Value any
		}
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber() // a float64 does not hold the gauge "version", which has 64 bits
	if err := decoder.Decode(&answer); err != nil {
		t.Fatalf("/stats: %v in %s", err, body)
	}
	stats := make(map[string]string)
	for _, s := range answer.Stats {
		if s.Name != "" {
			stats[s.Name] = fmt.Sprint(s.Value)
		}
	}
	return stats
}

// Stat returns a counter or gauge, or -1 if Envoy does not have the stat (yet). A zero would let a misspelt
// name pass.
func (e *Envoy) Stat(t testing.TB, name string) int64 {
	t.Helper()
	text, ok := e.stat(t, name)
	if !ok {
		return -1
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("stat %s: %v", name, err)
	}
	return n
}

// TextStat returns a text readout, such as cluster_manager.cds.version_text, or "" if Envoy does not have the
// stat yet.
func (e *Envoy) TextStat(t testing.TB, name string) string {
	t.Helper()
	text, _ := e.stat(t, name)
	return text
}

func (e *Envoy) stat(t testing.TB, name string) (text string, ok bool) {
	t.Helper()
	text, ok = e.Stats(t, "^"+regexp.QuoteMeta(name)+"$")[name]
	return text, ok
}

// ConfigDump returns a list of /config_dump, such as "dynamic_active_clusters" or "dynamic_listeners", as
// decoded JSON. An empty list is nil, and so is an absent list, such as Envoy's list of routes before the
// first route.
func (e *Envoy) ConfigDump(t testing.TB, list string) []map[string]any {
	t.Helper()
	path := "/config_dump?include_eds&resource=" + url.QueryEscape(list)
	status, body, err := e.ask(http.MethodGet, path)
	switch {
	case err != nil:
		t.Fatalf("Envoy's admin interface: %v", err)
	case status == http.StatusNotFound:
		return nil
	case status != http.StatusOK:
		t.Fatalf("Envoy's admin interface: %s: status %d: %s", path, status, body)
	}
	var dump struct{ Configs []map[string]any }
	if err := json.Unmarshal([]byte(body), &dump); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
	return dump.Configs
}

// AdminAddress returns the address of the admin interface: IP:PORT, or the path of a Unix socket.
func (e *Envoy) AdminAddress(t testing.TB) string {
	t.Helper()
	address, err := os.ReadFile(e.file("admin"))
	if err != nil {
		t.Fatal(err)
	}
	return string(address)
}
