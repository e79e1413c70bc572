package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/tools/certs"
	"xdspub/tools/unixhttp"
	"xdspub/xds"
)

// served is a server with a certificate. The test asks it by Unix sockets.
type served struct {
	*servedTree
	t     *testing.T
	flags []string
	http  string // the socket of --http
	ca    *certs.Authority
	pems  pems
	n     int64
	// missed is closed once the quorum has missed --ack-timeout.
	missed chan struct{}
}

func newServed(t *testing.T) *served {
	tree := serveTree(t, nil)
	s := &served{servedTree: tree, t: t, http: tree.socket + "h", ca: certs.NewAuthority(t), pems: pems{t, filepath.Dir(tree.src)}, missed: make(chan struct{})}
	s.tree("name")
	s.certificate(time.Now().Add(1000 * time.Hour))
	s.flags = []string{"--grpc", "unix:" + s.socket, "--http", "unix:" + s.http, "--tls-cert", s.pems.path("server.pem"), "--tls-key", s.pems.path("server.key")}
	return s
}

// run starts the server with further flags, and waits until it has published.
func (s *served) run(flags ...string) { s.start(s.t, append(s.flags, flags...)...) }

// tree writes the source tree: a cluster with the name web in a field. The tree is valid if field is name.
func (s *served) tree(field string) {
	s.write(s.t, "cluster.yaml", fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, %s: web, connect_timeout: 1s}`, field))
}

// certificate replaces the certificate of the server.
func (s *served) certificate(until time.Time) {
	s.n++
	cert, key := s.ca.SignUntil(until, s.n+1, "xds.example")
	s.pems.write("server", cert, key)
}

// dial returns a connection to the server.
func (s *served) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// The answers of a client of connect.
const (
	acks   = "ACK"
	nacks  = "NACK"
	silent = "silent"
	late   = "late" // an ACK after served.missed is closed
)

// connect starts a client that asks for all resources of a type. The client acknowledges the first response, and
// gives answer to the following ones. It ends with the test.
func (s *served) connect(of *xds.Type, answer string) {
	s.t.Helper()
	node := &corev3.Node{Id: "edge-1", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"env": structpb.NewStringValue("prod")}}}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial(s.t)).StreamAggregatedResources(s.t.Context())
	if err == nil {
		err = stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: of.URL()})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		for n, version := 0, ""; ; n++ {
			r, err := stream.Recv()
			if err != nil {
				return // the server or the test has ended
			}
			q := &discoveryv3.DiscoveryRequest{TypeUrl: of.URL(), VersionInfo: version, ResponseNonce: r.GetNonce()}
			switch {
			case n > 0 && answer == late:
				select {
				case <-s.missed:
				case <-s.t.Context().Done():
					return
				}
				fallthrough
			case n == 0 || answer == acks:
				version = r.GetVersionInfo()
				q.VersionInfo = version
			case answer == nacks:
				q.ErrorDetail = &rpcstatus.Status{Code: 3, Message: "this client rejects all"}
			default:
				continue
			}
			if stream.Send(q) != nil {
				return
			}
		}
	}()
	(&cell{Exit: new(int), Shows: []string{"in sync: 1 client\n"}}).holds(s.t, "a client that has acknowledged", func() (string, int) { return s.status() })
}

func (s *served) status(flags ...string) (string, int) {
	stdout, stderr, exit := xdspub(s.t, append([]string{"status", "--serve", "unix:" + s.socket}, flags...)...)
	return stdout + stderr, exit
}

// get asks a view by HTTP. code 0 means that there was no answer.
func (s *served) get(path string) (body string, code int) { return getUnix(s.http, path) }

// getUnix asks the HTTP server behind a Unix socket. code 0 means that there was no answer.
func getUnix(socket, path string) (body string, code int) {
	client := unixhttp.Client(socket)
	client.Timeout = time.Second
	response, err := client.Get("http://xds" + path)
	if err != nil {
		return "no answer", 0
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "no answer", 0
	}
	return string(text), response.StatusCode
}

// health asks the health service of gRPC.
func (s *served) health(conn *grpc.ClientConn) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return "no answer"
	}
	return "is " + answer.GetStatus().String()
}

// csds asks the client status discovery service.
func (s *served) csds(conn *grpc.ClientConn) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	answer, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(ctx, &statusv3.ClientStatusRequest{})
	if err != nil {
		return "no answer"
	}
	text, err := protojson.Marshal(answer)
	return fmt.Sprint(string(text), err)
}

// makeServed has, by name, the functions that make the states of a serve in testdata/states.yaml.
var makeServed = map[string]func(s *served){
	"running": func(s *served) { s.run() },
	"invalid from the start": func(s *served) {
		s.tree("wrong")
		s.begin(s.t, s.flags...)
		s.server.WaitLog(s.t, "event=source-invalid")
	},
	"invalid": func(s *served) {
		s.run()
		s.tree("wrong")
		s.server.WaitLog(s.t, "event=source-invalid")
	},
	"settings broken": func(s *served) {
		s.run()
		s.write(s.t, "xdspub.yaml", "wrong: [")
		s.server.WaitLog(s.t, "event=failed")
	},
	"mended": func(s *served) {
		s.run()
		s.tree("wrong")
		s.server.WaitLog(s.t, "event=source-invalid")
		s.write(s.t, "xdspub.yaml", "wrong: [")
		s.server.WaitLog(s.t, "event=failed")
		s.write(s.t, "xdspub.yaml", "# no settings\n")
		s.tree("name")
		s.server.WaitLog(s.t, "event=source-valid")
	},
	"newer": func(s *served) {
		s.run("--ack-quorum", "all", "--ack-timeout", "1h")
		s.connect(xds.Cluster, silent)
		s.tree("alt_stat_name: other, name")
	},
	"quorum missed": func(s *served) {
		s.run("--ack-quorum", "all", "--ack-timeout", "100ms")
		s.connect(xds.Cluster, silent)
		s.tree("alt_stat_name: other, name")
		s.server.WaitLog(s.t, "event=snapshot-unconfirmed ")
	},
	"quorum met late": func(s *served) {
		s.run("--ack-quorum", "all", "--ack-timeout", "100ms")
		s.connect(xds.Cluster, late)
		s.tree("alt_stat_name: other, name")
		s.server.WaitLog(s.t, "event=snapshot-unconfirmed ")
		close(s.missed)
		s.server.WaitLog(s.t, "event=snapshot-confirmed ")
	},
	"held": func(s *served) {
		s.run("--ack-quorum", "all")
		s.connect(xds.Cluster, nacks)
		s.tree("alt_stat_name: other, name")
		s.server.WaitLog(s.t, "event=rolled-back ")
	},
	"disk full": func(s *served) {
		disk := filepath.Join(filepath.Dir(s.src), "disk")
		if err := os.Mkdir(disk, 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.server = startUnshared(s.t, isolated(smallDisk(disk)), slices.Concat([]string{watcher, "serve"}, s.flags, []string{"--out", disk + "/out", s.src})...)
		s.server.WaitLog(s.t, "event=published ")
		fillDisk(s.t, s.server, disk)
		s.tree("alt_stat_name: " + strings.Repeat("n", 8192) + ", name")
		s.server.WaitLog(s.t, "event=failed")
	},
	"certificate of the source tree expires soon": func(s *served) {
		s.writeCertificate(s.t, time.Now().Add(time.Hour))
		s.run()
	},
	"certificate of the source tree has expired": func(s *served) {
		s.writeCertificate(s.t, time.Now().Add(-time.Hour))
		s.run()
	},
	"certificate of the server expires soon": func(s *served) {
		s.certificate(time.Now().Add(5 * time.Minute))
		s.run()
	},
	"certificate of the server has expired": func(s *served) {
		s.certificate(time.Now().Add(-time.Minute))
		s.run()
	},
	"CA of clients has expired": func(s *served) {
		old := certs.NewAuthorityUntil(s.t, time.Now().Add(-time.Minute))
		s.pems.write("ca", old.PEM(), nil)
		s.run("--client-ca", s.pems.path("ca.pem"))
	},
	"store gone": func(s *served) {
		writer := newFixture(s.t, map[string]string{"blue.yaml": aCluster("blue")})
		etcd, store := writer.startWriter(s.t)
		s.src = store
		s.run()
		etcd.End(s.t)
		s.server.WaitLog(s.t, "event=store-failed ")
	},
	"hung": func(s *served) {
		s.run()
		s.server.Signal(s.t, syscall.SIGSTOP)
		pid := s.server.cmd.Process.Pid
		s.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	},
	"killed":               func(s *served) { s.run(); s.kill(s.t) },
	"killed, then started": func(s *served) { s.run(); s.kill(s.t); s.run() },
	"ended": func(s *served) {
		s.run()
		s.server.Signal(s.t, syscall.SIGTERM)
		s.server.Wait(s.t)
	},
	"client in sync": func(s *served) { s.run(); s.connect(xds.Cluster, acks) },
	"client behind": func(s *served) {
		s.run()
		s.connect(xds.Cluster, silent)
		s.tree("alt_stat_name: other, name")
		s.server.WaitLog(s.t, "event=published ")
	},
	"client rejects": func(s *served) {
		s.run()
		s.connect(xds.Cluster, nacks)
		s.tree("alt_stat_name: other, name")
		s.server.WaitLog(s.t, "event=response-rejected ")
	},
	"client without a listener": func(s *served) { s.run(); s.connect(xds.Listener, acks) },
	"client without a variant": func(s *served) {
		s.write(s.t, "prod/xdspub.yaml", "when: {env: prod}\n")
		s.write(s.t, "prod/listener.yaml", listener("edge", 1, "route_config: {"+hosts("web")+"}"))
		s.run("--node-param", "env=metadata.env", "--allow-removal")
		s.connect(xds.Listener, acks)
		s.write(s.t, "prod/xdspub.yaml", "when: {env: production}\n")
		s.server.WaitLog(s.t, "event=client-without-variant ")
	},
	"invalid, client behind": func(s *served) {
		s.run()
		s.connect(xds.Cluster, silent)
		s.tree("alt_stat_name: other, name")
		s.server.WaitLog(s.t, "event=published ")
		s.tree("wrong")
		s.server.WaitLog(s.t, "event=source-invalid")
	},
}

// TestServedStates makes each state of a serve in testdata/states.yaml, and looks at each of its views.
func TestServedStates(t *testing.T) {
	t.Parallel()
	rows := statesTable(t).Serve
	if len(rows) != len(makeServed) {
		t.Errorf("testdata/states.yaml has %d states of a serve, and the test makes %d", len(rows), len(makeServed))
	}
	for _, row := range rows {
		t.Run(row.State, func(t *testing.T) {
			complete(t, row.state, row.cells())
			t.Parallel()
			if makeServed[row.State] == nil {
				t.Fatal("no function makes this state")
			}
			s := newServed(t)
			makeServed[row.State](s)
			conn := s.dial(t)
			row.Status.holds(t, "status --serve ADDR", func() (string, int) { return s.status() })
			row.JSON.holds(t, "status --format json", func() (string, int) { return s.status("--format", "json") })
			row.Log.holds(t, "log", func() (string, int) { return s.server.Log(), 0 })
			row.Readyz.holds(t, "/readyz", func() (string, int) { return s.get("/readyz") })
			row.Livez.holds(t, "/livez", func() (string, int) { return s.get("/livez") })
			row.Health.holds(t, "gRPC health", func() (string, int) { return s.health(conn), 0 })
			row.Metrics.holds(t, "/metrics", func() (string, int) { return s.get("/metrics") })
			row.CSDS.holds(t, "CSDS", func() (string, int) { return s.csds(conn), 0 })
			sameFaults(t, s.http)
		})
	}
}

// TestQuorumMissed: status --out names a quorum that was missed, for the directory of --state as for an output
// directory.
func TestQuorumMissed(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--state", "--out"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			s := newServed(t)
			dir := filepath.Join(filepath.Dir(s.src), "kept")
			s.run(flag, dir, "--ack-quorum", "all", "--ack-timeout", "100ms")
			s.connect(xds.Cluster, silent)
			s.tree("alt_stat_name: other, name")
			s.server.WaitLog(t, "event=snapshot-unconfirmed ")
			(&cell{Exit: new(1), Shows: []string{"not in sync: ", " is not confirmed: 0 of the 1 client that the snapshot concerns have acknowledged it"}}).holds(t, "status --out", func() (string, int) {
				stdout, stderr, exit := xdspub(t, "status", "--out", dir)
				return stdout + stderr, exit
			})
		})
	}
}
