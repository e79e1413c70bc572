package admit

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/event"
	"xdspub/xds"
	"xdspub/xds/params"
)

func TestNodeRule(t *testing.T) {
	for _, c := range []struct {
		rule, id, name string
		want           bool
	}{
		{"edge=edge.test", "edge", "edge.test", true},
		{"edge=edge.test", "edge", "other.test", false},
		{"edge=edge.test", "edge2", "edge.test", false},
		{"edge=edge.test", "", "edge.test", false},
		// The * of both sides match the same text.
		{"edge-*=spiffe://test/edge-*", "edge-1", "spiffe://test/edge-1", true},
		{"edge-*=spiffe://test/edge-*", "edge-1", "spiffe://test/edge-2", false},
		{"edge-*=spiffe://test/edge-*", "edge-", "spiffe://test/edge-", false},
		{"*=*.test", "a.b", "a.b.test", true},
		{"*=*.test", "a", "a.b.test", false},
		// ** matches any text.
		{"**=**.test", "a", "b.test", true},
		{"sidecar~**=spiffe://test/*", "sidecar~1", "spiffe://test/web", true},
		{"sidecar~*=spiffe://test/web", "sidecar~1", "spiffe://test/web", true},
		{"**=**", "", "a", false},
		{"aba*aba=x", "aba", "x", false}, // before and after do not overlap
		{"aba*aba=x", "ababa", "x", false},
		{"a=b=c", "a", "b=c", true},
		{".*=x", "ab", "x", false}, // no regular expression
		// An id with an extra line feed is another id.
		{"edge-*=spiffe://test/edge-*", "edge-1\n", "spiffe://test/edge-1", false},
		{"edge-*=spiffe://test/edge-*", "edge-1\x00", "spiffe://test/edge-1", false},
		{"edge-*=spiffe://test/edge-*", "EDGE-1", "spiffe://test/edge-1", false},
		{"edge-*=spiffe://test/edge-*", "\u0435dge-1", "spiffe://test/edge-1", false}, // Cyrillic
		{"edge-*=spiffe://test/edge-*", "edge-1", "spiffe://test/edge-%31", false},
		{"edge-*=spiffe://test/edge-*", "edge-1", "spiffe://test/edge-1/edge-2", false},
		{"edge-*=spiffe://test/edge-*", "edge-*", "spiffe://test/edge-1", false},
		{"edge=edge.test", "edge ", "edge.test", false},
		// A * in a certificate is no wildcard.
		{"*=*.test", "*", "*.test", true},
		{"*=*.test", "a", "*.test", false},
	} {
		r, err := ParseNodeRule(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if is := r.allows(c.id, c.name); is != c.want {
			t.Errorf("%s: %q as %q: %v", c.rule, c.id, c.name, is)
		}
	}
	for _, text := range []string{"", "edge", "=a", "a=", "*a*=b", "a=***", "a=*b**", "a=**b*"} {
		if _, err := ParseNodeRule(text); err == nil {
			t.Errorf("%q is a rule", text)
		}
	}
}

func rules(t *testing.T, texts ...string) (list []NodeRule) {
	for _, text := range texts {
		r, err := ParseNodeRule(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// TestNodes checks that a client may use the node ids that its certificate allows, and that a client of a
// Unix socket may use any node id.
func TestNodes(t *testing.T) {
	uri, err := url.Parse("spiffe://test/c")
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{DNSNames: []string{"a.test", "b.test"}, URIs: []*url.URL{uri}, EmailAddresses: []string{"d@test"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}}
	cert.Subject.CommonName = "e.test"
	judge := New(Options{Nodes: rules(t, "*=*.test", "*=spiffe://test/*", "*=*@test", "ip=192.0.2.1")})
	for id, want := range map[string]codes.Code{"a": 0, "b": 0, "c": 0, "d": 0, "ip": 0, "e": codes.PermissionDenied, "": codes.PermissionDenied} {
		if err := judge.Stream(Client{TLS: true, Certificate: cert}).Ask(Request{Node: &corev3.Node{Id: id}, TypeURL: xds.Cluster.URL()}); status.Code(err) != want {
			t.Errorf("%q: %v", id, err)
		}
	}
	for name, c := range map[string]struct {
		client Client
		want   codes.Code
	}{
		"socket":         {Client{Local: true}, 0},
		"no certificate": {Client{TLS: true}, codes.PermissionDenied},
		"plain":          {Client{}, codes.PermissionDenied},
	} {
		if err := judge.Stream(c.client).Ask(Request{Node: &corev3.Node{Id: "z"}, TypeURL: xds.Cluster.URL()}); status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Ask ignores the nodes of later requests.
	s := judge.Stream(Client{TLS: true, Certificate: cert})
	for i, node := range []*corev3.Node{{Id: "a"}, nil, {Id: "e"}} {
		if err := s.Ask(Request{Node: node, TypeURL: xds.Cluster.URL()}); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if err := judge.Stream(Client{TLS: true, Certificate: cert}).Ask(Request{TypeURL: xds.Cluster.URL()}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("no node: %v", err)
	}
}

// TestStatus checks who may request the status of all clients.
func TestStatus(t *testing.T) {
	ops, web := &x509.Certificate{DNSNames: []string{"a", "ops.test"}}, &x509.Certificate{DNSNames: []string{"web.other"}}
	ops.Subject.CommonName, web.Subject.CommonName = "x", "ops.test"
	pattern, err := ParseNamePattern("*.test")
	if err != nil {
		t.Fatal(err)
	}
	anybody, known := New(Options{}), New(Options{Certificates: true, Status: []NamePattern{pattern}})
	for name, c := range map[string]struct {
		judge  *Judge
		client Client
		want   codes.Code
	}{
		"socket":                    {anybody, Client{Local: true}, 0},
		"this machine":              {anybody, Client{Loopback: true}, 0},
		"this machine, TLS":         {anybody, Client{Loopback: true, TLS: true}, 0},
		"another machine":           {anybody, Client{}, codes.PermissionDenied},
		"another machine, TLS":      {anybody, Client{TLS: true}, codes.PermissionDenied},
		"another machine, no rule":  {New(Options{Certificates: true}), Client{TLS: true, Certificate: ops}, codes.PermissionDenied},
		"known: socket":             {known, Client{Local: true}, 0},
		"known: no certificate":     {known, Client{Loopback: true, TLS: true}, codes.PermissionDenied},
		"known: another name":       {known, Client{Loopback: true, TLS: true, Certificate: web}, codes.PermissionDenied},
		"known: by its certificate": {known, Client{TLS: true, Certificate: ops}, 0},
	} {
		if err := c.judge.Status(c.client); status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "*a*", "***"} {
		if _, err := ParseNamePattern(text); err == nil {
			t.Errorf("%q is a pattern", text)
		}
	}
}

func TestSecrets(t *testing.T) {
	judge := New(Options{})
	for _, c := range []struct {
		client Client
		want   codes.Code
	}{{Client{}, codes.PermissionDenied}, {Client{TLS: true}, 0}, {Client{Local: true}, 0}} {
		s := judge.Stream(c.client)
		if err := s.Ask(Request{TypeURL: xds.Secret.URL()}); status.Code(err) != c.want {
			t.Errorf("%v: %v", c.client, err)
		}
		if err := s.Secret(); status.Code(err) != c.want {
			t.Errorf("%v: %v", c.client, err)
		}
		if err := judge.Stream(c.client).Ask(Request{TypeURL: xds.Cluster.URL()}); err != nil {
			t.Errorf("%v: %v", c.client, err)
		}
	}
}

func TestHowMuch(t *testing.T) {
	env, err := ParseNodeParameter("env=metadata.env")
	if err != nil {
		t.Fatal(err)
	}
	judge := New(Options{Names: 10, NameLength: 100, Resources: func() int { return 5 }, NodeParameters: []NodeParameter{env}})
	long := strings.Repeat("x", 101)
	said, err := structpb.NewStruct(map[string]any{"env": strings.Repeat("x", params.MaxText+1)})
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := structpb.NewStruct(map[string]any{"a": strings.Repeat("x", maxNode)})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request Request
		want    codes.Code
	}{
		"name":      {Request{TypeURL: xds.Cluster.URL(), Names: []string{"a", long}}, codes.InvalidArgument},
		"fits":      {Request{TypeURL: xds.Cluster.URL(), Names: []string{long[1:]}}, 0},
		"type":      {Request{TypeURL: long}, codes.InvalidArgument},
		"node":      {Request{TypeURL: xds.Cluster.URL(), Node: &corev3.Node{Metadata: metadata}}, codes.InvalidArgument},
		"parameter": {Request{TypeURL: xds.Cluster.URL(), Node: &corev3.Node{Metadata: said}}, codes.InvalidArgument},
		"node id":   {Request{TypeURL: xds.Cluster.URL(), Node: &corev3.Node{Id: strings.Repeat("x", maxNode)}}, codes.InvalidArgument},
		"extension": {Request{TypeURL: xds.Cluster.URL(), Node: &corev3.Node{Id: "a", Extensions: []*corev3.Extension{{Name: strings.Repeat("x", maxNode)}}}}, 0},
	} {
		if err := judge.Stream(Client{}).Ask(c.request); status.Code(err) != c.want || len(fmt.Sprint(err)) > 200 {
			t.Errorf("%s: %v", name, err)
		}
	}

	s := judge.Stream(Client{})
	for _, c := range []struct {
		of    *xds.Type
		names int
		want  codes.Code
	}{{xds.Cluster, 10, 0}, {xds.Endpoints, 5, 0}, {xds.Listener, 1, codes.ResourceExhausted}, {xds.Listener, 0, 0}, {xds.Cluster, 11, codes.ResourceExhausted}} {
		if err := s.Count(c.of.URL(), c.names); status.Code(err) != c.want {
			t.Errorf("%d of %s: %v", c.names, c.of, err)
		}
	}

	s = judge.Stream(Client{})
	for i := range maxTypes + 1 {
		err := s.Ask(Request{TypeURL: fmt.Sprint("type.googleapis.com/unknown", i)})
		if want := i == maxTypes; (status.Code(err) == codes.ResourceExhausted) != want {
			t.Errorf("type %d: %v", i, err)
		}
	}
}

// TestRefusedOnce checks that repeated refusals are logged once per logAgain, and that the memory for them is
// bounded.
func TestRefusedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		judge := New(Options{Log: event.New(slog.NewTextHandler(&log, nil))})
		ask := func(address string) {
			_ = judge.Stream(Client{Address: address}).Ask(Request{TypeURL: xds.Secret.URL()})
		}
		lines := func(want int) {
			t.Helper()
			if is := strings.Count(log.String(), "event=client-refused"); is != want {
				t.Errorf("%d lines: %s", is, log.String())
			}
			log.Reset()
		}
		for i := range 100 {
			ask(fmt.Sprint("192.0.2.1:", i))
		}
		lines(1)
		ask("192.0.2.2:1")
		lines(1)
		time.Sleep(logAgain) // of the synctest clock
		ask("192.0.2.1:1")
		lines(1)
		for i := range 2 * maxLogged {
			ask(fmt.Sprintf("[2001:db8::%x]:1", i))
		}
		if len(judge.logged) > maxLogged {
			t.Error(len(judge.logged), "are remembered")
		}
	})
}
