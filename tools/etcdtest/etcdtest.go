// Package etcdtest runs the real etcd for tests.
//
//	s := etcdtest.Start(t)
//	kvs, err := s.Client(t).Get(ctx, "/fleet", clientv3.WithPrefix())
//
// If etcd is missing, tests skip; with CI=true, tests fail.
package etcdtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"xdspub/tools/envoytest"
)

// starting is the longest start of etcd on a busy machine.
const starting = time.Minute

// Binary returns the path of etcd: XDSPUB_ETCD, or the etcd that scripts/etcd has built.
func Binary(t testing.TB) string {
	t.Helper()
	return envoytest.Fetched(t, "NOT TESTED: etcd is missing. Build it: scripts/etcd", "etcd")
}

// Server is a node of an etcd.
type Server struct {
	// Endpoint is the address for clients, as HOST:PORT.
	Endpoint string
	// Dir has the data.
	Dir string
	// TLS configures clients of an etcd with the option --cert-file.
	TLS *tls.Config

	program, name, peer, cluster string
	enter, options               []string
	scheme                       string
	cmd                          *exec.Cmd
	ended                        chan struct{}
}

// Start starts an etcd of one node with options, such as --quota-backend-bytes=1048576, and waits until etcd answers.
// With the option --cert-file, clients connect by TLS, and Start waits only for the port. Etcd ends with the test.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return StartCluster(t, 1, options...)[0]
}

// StartCluster is Start for an etcd of several nodes.
func StartCluster(t testing.TB, nodes int, options ...string) (all []*Server) {
	t.Helper()
	return StartAt(t, slices.Repeat([]Place{{Host: "127.0.0.1", Peer: "127.0.0.1"}}, nodes), options...)
}

// Place is where a node of an etcd runs.
type Place struct {
	// Host is the address of the node for clients, and Peer the address for other nodes.
	Host, Peer string
	// Enter is a command that runs the command in its arguments at the place, such as nsenter --net=PATH; empty for
	// none.
	Enter []string
}

// StartAt is Start for an etcd with a node at each place.
func StartAt(t testing.TB, places []Place, options ...string) (all []*Server) {
	t.Helper()
	program, dir, scheme := Binary(t), t.TempDir(), "http://"
	if strings.Contains(strings.Join(options, " "), "--cert-file") {
		scheme = "https://"
	}
	var cluster []string
	for i, at := range places {
		name := fmt.Sprint("node", i)
		s := &Server{
			Endpoint: fmt.Sprint(at.Host, ":", envoytest.FreePort(t)), Dir: filepath.Join(dir, name), program: program, name: name,
			peer: fmt.Sprint("http://", at.Peer, ":", envoytest.FreePort(t)), enter: at.Enter, options: options, scheme: scheme,
		}
		all, cluster = append(all, s), append(cluster, name+"="+s.peer)
	}
	for _, s := range all {
		s.cluster = strings.Join(cluster, ",")
		s.Begin(t)
		t.Cleanup(func() { s.End(t) })
	}
	for _, s := range all {
		s.wait(t)
	}
	return all
}

// Run starts a node that has ended, with its data, and waits until it answers.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	s.Begin(t)
	s.wait(t)
}

// Begin is Run without the wait: without the other nodes, a node does not answer.
func (s *Server) Begin(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(s.Dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := slices.Concat(s.enter, []string{
		s.program, "--name=" + s.name, "--data-dir=" + s.Dir,
		"--listen-client-urls=" + s.scheme + s.Endpoint, "--advertise-client-urls=" + s.scheme + s.Endpoint,
		"--listen-peer-urls=" + s.peer, "--initial-advertise-peer-urls=" + s.peer, "--initial-cluster=" + s.cluster,
		"--unsafe-no-fsync", "--log-level=warn", "--heartbeat-interval=20", "--election-timeout=200",
	}, s.options)
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, ended := s.cmd, make(chan struct{})
	s.ended = ended
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(ended)
	}()
}

// wait waits until etcd answers.
func (s *Server) wait(t testing.TB) {
	t.Helper()
	s.eventually(t, "etcd listens", func() error { // a client that dials before waits for a second
		c, err := net.Dial("tcp", s.Endpoint)
		if err == nil {
			c.Close()
		}
		return err
	})
	if s.scheme == "https://" {
		return
	}
	c := s.Client(t)
	defer c.Close()
	s.eventually(t, "etcd answers", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "none")
		if errors.Is(err, rpctypes.ErrUserEmpty) {
			err = nil
		}
		return err
	})
}

// eventually calls f until it returns no error. It fails the test if etcd has ended.
func (s *Server) eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	envoytest.Eventually(t, starting, what, func() (bool, string) {
		select {
		case <-s.ended:
			text, _ := os.ReadFile(s.Dir + ".log")
			t.Fatalf("etcd has ended: %v\n%s", s.cmd.ProcessState, text)
		default:
		}
		err := f()
		return err == nil, fmt.Sprint(err)
	})
}

// Signal sends a signal, such as SIGSTOP, to etcd.
func (s *Server) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// End kills etcd, and waits until etcd has ended.
func (s *Server) End(t testing.TB) {
	t.Helper()
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// Client returns a client, which is closed with the test.
func (s *Server) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint}, TLS: s.TLS, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
