package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"xdspub/internal/certs"
	"xdspub/internal/envoytest"
)

// servedStates are the states of a server and its source tree, each after the one before, and what the views show.
var servedStates = []struct {
	title string
	do    func(*servedTruth)
	// exit is the exit status of status --serve, and says what it prints.
	exit int
	says []string
	// ready is the status of /readyz and of the gRPC health service, and body what /readyz prints.
	ready int
	body  string
	// metrics are lines of /metrics.
	metrics []string
}{
	{
		"an invalid tree at the start", func(s *servedTruth) { s.tree("wrong"); s.begin(s.t, s.flags...) },
		1, []string{"not in sync: nothing is published; the source tree is invalid (1 error)\n", "cluster.yaml:1:", "[unknown-field]"},
		503, "not ready\nnothing is published\nthe source tree is invalid (1 error)\n", []string{"xdspub_source_valid 0", "xdspub_source_errors 1"},
	},
	{
		"a valid tree", func(s *servedTruth) { s.tree("name") },
		0, []string{"in sync: 0 clients\nserves: snapshot v", "source: "},
		200, "ok\n", []string{"xdspub_source_valid 1", "xdspub_source_errors 0", `xdspub_snapshot_info{revision="",snapshot="v`, "xdspub_last_success_time_seconds 1"},
	},
	{
		"settings that can't be read", func(s *servedTruth) { s.write(s.t, "xdspub.yaml", "wrong: [") },
		1, []string{"not in sync: the source tree can't be read or published\n", "  can't be read or published: "},
		200, "ok\nthe source tree can't be read or published\n", []string{"xdspub_source_valid 0"},
	},
	{
		"settings that are mended", func(s *servedTruth) { s.write(s.t, "xdspub.yaml", "") },
		0, []string{"in sync: 0 clients\n"},
		200, "ok\n", []string{"xdspub_source_valid 1"},
	},
	{
		"an invalid edit", func(s *servedTruth) { s.tree("wrong") },
		1, []string{"not in sync: the source tree is invalid (1 error)\nserves: snapshot v", "  is invalid since ", "[unknown-field]"},
		200, "ok\nthe source tree is invalid (1 error)\n", []string{"xdspub_source_valid 0", "xdspub_last_success_time_seconds 1"},
	},
	{
		"a tree that is mended", func(s *servedTruth) { s.tree("name") },
		0, []string{"in sync: 0 clients\n"},
		200, "ok\n", []string{"xdspub_source_valid 1"},
	},
	{
		"a certificate that is about to expire", func(s *servedTruth) { s.certificate(time.Now().Add(5 * time.Minute)) },
		0, []string{"in sync: 0 clients\n", "certificate: expires at "},
		200, "ok\n", []string{"xdspub_certificate_expiry_seconds "},
	},
	{
		"a certificate that has expired", func(s *servedTruth) { s.certificate(time.Now().Add(-time.Hour)) },
		1, []string{"not in sync: the certificate of the server has expired\n", "certificate: expired at "},
		200, "ok\nthe certificate of the server has expired\n", nil,
	},
	{
		"a server that hangs", func(s *servedTruth) {
			s.certificate(time.Now().Add(1000 * time.Hour))
			s.server.Signal(s.t, syscall.SIGSTOP)
		},
		3, []string{"the server has not answered"},
		0, "", nil,
	},
	{
		"a server that goes on", func(s *servedTruth) { s.server.Signal(s.t, syscall.SIGCONT) },
		0, []string{"in sync: 0 clients\n"},
		200, "ok\n", nil,
	},
	{
		"a server that was killed", func(s *servedTruth) { s.kill(s.t) },
		3, []string{"connection refused"},
		0, "", nil,
	},
	{
		"a server that has started again", func(s *servedTruth) { s.start(s.t, s.flags...) },
		0, []string{"in sync: 0 clients\n"},
		200, "ok\n", nil,
	},
	{
		"a server that has ended", func(s *servedTruth) { s.server.Signal(s.t, syscall.SIGTERM); s.server.Wait(s.t) },
		3, []string{"no such file"},
		0, "", nil,
	},
}

// servedTruth is a server with a certificate, which is asked by Unix sockets.
type servedTruth struct {
	*servedTree
	t     *testing.T
	flags []string
	http  string // the socket of --http
	ca    *certs.Authority
	pems  pems
	n     int64
}

// tree writes the source tree: a cluster with a field of that name.
func (s *servedTruth) tree(field string) {
	s.write(s.t, "cluster.yaml", fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, %s: web, connect_timeout: 1s}`, field))
}

// certificate replaces the certificate of the server.
func (s *servedTruth) certificate(until time.Time) {
	s.n++
	cert, key := s.ca.SignUntil(until, s.n+1, "xds.example")
	s.pems.write("server", cert, key)
}

// asks asks a view that answers HTTP; status 0 means that nobody answers.
func (s *servedTruth) asks(path string) (status int, body string) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.http)
	}}}
	response, err := client.Get("http://xds" + path)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(text)
}

// health asks the health service of gRPC; 0 means that nobody answers.
func (s *servedTruth) health() int {
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	switch {
	case err != nil:
		return 0
	case answer.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING:
		return 200
	}
	return 503
}

// TestServedTruth: in each state of a server and its source tree, all views of the server say the same.
func TestServedTruth(t *testing.T) {
	t.Parallel()
	tree := serveTree(t, nil)
	s := &servedTruth{servedTree: tree, t: t, ca: certs.NewAuthority(t), pems: pems{t, filepath.Dir(tree.src)}}
	if err := os.MkdirAll(s.src, 0o755); err != nil {
		t.Fatal(err)
	}
	s.http = s.socket + "h"
	s.certificate(time.Now().Add(1000 * time.Hour))
	s.flags = []string{"--grpc", "unix:" + s.socket, "--http", "unix:" + s.http, "--tls-cert", s.pems.path("server.pem"), "--tls-key", s.pems.path("server.key")}
	for _, is := range servedStates {
		is.do(s)
		envoytest.Eventually(t, patience, is.title, func() (bool, string) {
			status, body := s.asks("/readyz")
			health := s.health()
			if status != is.ready || health != is.ready || body != is.body {
				return false, fmt.Sprintf("/readyz: %d %q, health: %d", status, body, health)
			}
			_, metrics := s.asks("/metrics")
			for _, line := range is.metrics {
				if !strings.Contains(metrics, "\n"+line) {
					return false, line + " is missing:\n" + metrics
				}
			}
			stdout, stderr, exit := xdspub(t, "status", "--serve", "unix:"+s.socket)
			for _, line := range is.says {
				if exit != is.exit || !strings.Contains(stdout+stderr, line) {
					return false, fmt.Sprintf("exit status %d, without %q:\n%s%s", exit, line, stdout, stderr)
				}
			}
			return true, ""
		})
		if is.exit == 3 {
			continue
		}
		stdout, _, exit := xdspub(t, "status", "--serve", "unix:"+s.socket, "--format", "json")
		var report struct {
			InSync bool `json:"in_sync"`
			Wrong  []string
			Watch  struct{ Source string }
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || exit != is.exit || report.InSync != (exit == 0) || report.InSync != (len(report.Wrong) == 0) || report.Watch.Source == "" {
			t.Errorf("%s: %v, exit status %d\n%s", is.title, err, exit, stdout)
		}
	}
}
