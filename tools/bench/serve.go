package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"xdspub/tools/sample"
	"xdspub/xds"
)

const (
	// served is the number of clients.
	served = 1_000
	// servedEdits is the number of edits of a cluster.
	servedEdits = 5
	// forAll is an option of xdspub serve. The server takes all clients for one client, which must hold their memory.
	forAll = "--max-client-memory=1GiB"
)

// measureServe prints the cost of connecting clients, and of sending an edited cluster to all clients, for xdspub
// serve and for a server of go-control-plane with a SnapshotCache. Each server is a process on a Unix socket. Each
// client has its own connection.
func measureServe(dir, xdspub string, n int) error {
	t := sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}
	fmt.Printf("%d clients on ADS ask for all of %d clusters, then one cluster is edited %d times: until they have it, best of "+
		"these, and the mean processor time\n\n", served, n, servedEdits)
	fmt.Print("| | all connected | CPU | memory | edit, p50 | p99 | CPU an edit |\n|---|---|---|---|---|---|---|\n")
	for _, variant := range []string{"delta", "sotw"} {
		var theirs figures
		for _, who := range []string{"SnapshotCache", "xdspub serve"} {
			place := filepath.Join(dir, "serve-"+variant+"-"+who)
			s, err := newContender(place, xdspub, who, t)
			if err != nil {
				return err
			}
			f, err := s.measure(variant == "delta")
			s.end()
			if err != nil {
				return fmt.Errorf("%s, %s: %w", who, variant, err)
			}
			fmt.Printf("| %s, %s | %v | %v | %.0f MiB | %v "+
				"| %v | %v |\n", who, variant, f.connected.Round(time.Millisecond), f.connectCPU, f.memory,
				f.p50.Round(100*time.Microsecond), f.p99.Round(100*time.Microsecond), f.editCPU)
			if who == "SnapshotCache" {
				theirs = f
				continue
			}
			ratio := func(a, b time.Duration) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }
			fmt.Printf("| ratio, %s | %s | %s | %.2f | %s "+
				"| %s | %s |\n", variant, ratio(f.connected, theirs.connected), ratio(f.connectCPU, theirs.connectCPU),
				f.memory/theirs.memory, ratio(f.p50, theirs.p50), ratio(f.p99, theirs.p99), ratio(f.editCPU, theirs.editCPU))
		}
	}
	fmt.Println()
	return nil
}

// figures are the times and the memory of one server.
type figures struct {
	connected  time.Duration
	firstCPU   time.Duration // for the first client
	connectCPU time.Duration // for all others
	memory     float64       // MiB
	p50, p99   time.Duration
	editCPU    time.Duration
	// relayCPU is the processor time of the relay for all clients, relayEditCPU that of an edit.
	relayCPU, relayEditCPU time.Duration
}

// contender is a server that is measured.
type contender struct {
	*program
	relay  *program      // between the clients and the server; nil for none
	socket string        // for the clients
	began  time.Duration // processor time until the socket was open
	n      int
	edit   func(change int) error
}

// newContender starts a server of a topology, by its name. more are options of xdspub.
func newContender(dir, xdspub, who string, t sample.Topology, more ...string) (*contender, error) {
	s := &contender{socket: filepath.Join(dir, "s"), n: t.Clusters}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if who == "SnapshotCache" {
		if err := s.beginCache(dir, snapshotCache); err != nil {
			return nil, err
		}
	} else {
		tree := filepath.Join(dir, "tree")
		for name, text := range t.Files() {
			if err := put(filepath.Join(tree, name), text); err != nil {
				return nil, err
			}
		}
		s.edit = func(change int) error {
			return put(filepath.Join(tree, "clusters/000007.yaml"), t.Cluster(7, change))
		}
		s.program, err = begin(xdspub, slices.Concat([]string{"serve", "--grpc", "unix:" + s.socket, "--rescan", "1h", forAll}, more, []string{tree})...)
		if err != nil {
			return nil, err
		}
	}
	return s, s.open()
}

// beginCache starts a server of go-control-plane. kind is snapshotCache or staticCache.
func (s *contender) beginCache(dir, kind string) error {
	edited := filepath.Join(dir, "edited.yaml")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.edit = func(change int) error {
		return errors.Join(put(edited, clusterOf(kind, 7, change)), s.Process.Signal(syscall.SIGHUP))
	}
	s.program, err = begin(self, kind, s.socket, edited, fmt.Sprint(s.n))
	return err
}

// open waits until the socket is open. After an error, the server has ended.
func (s *contender) open() error {
	_, err := changed(s.socket, nil)
	if err != nil {
		s.end()
	}
	s.began = s.cpu()
	return err
}

// relayCPU returns the processor time that the relay has used; 0 without a relay.
func (s *contender) relayCPU() time.Duration {
	if s.relay == nil {
		return 0
	}
	return s.relay.cpu()
}

// measure connects the clients, and edits the cluster.
func (s *contender) measure(delta bool) (f figures, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	warm := make(chan time.Time, 1) // gets a time when the server has its snapshot
	go s.follow(ctx, delta, warm)
	if err := await(ctx, warm, 1, nil); err != nil {
		return f, err
	}
	time.Sleep(time.Second)

	told := make(chan time.Time, served)
	failed := make(chan error, served)
	begun, used := time.Now(), s.cpu()
	f.firstCPU = used - s.began
	for range served {
		go func() { failed <- s.follow(ctx, delta, told) }()
	}
	if err := await(ctx, told, served, failed); err != nil {
		return f, err
	}
	f.connected, f.connectCPU, f.relayCPU = time.Since(begun), s.cpu()-used, s.relayCPU()
	time.Sleep(2 * time.Second) // until the last clients have acknowledged
	used, f.relayEditCPU = s.cpu(), s.relayCPU()
	for change := range servedEdits {
		start := time.Now()
		if err := s.edit(change + 1); err != nil {
			return f, err
		}
		var took []time.Duration
		for range served {
			select {
			case at := <-told:
				took = append(took, at.Sub(start))
			case err := <-failed:
				return f, err
			case <-ctx.Done():
				return f, ctx.Err()
			}
		}
		slices.Sort(took)
		if p99 := took[served*99/100]; change == 0 || p99 < f.p99 {
			f.p50, f.p99 = took[served/2], p99
		}
		time.Sleep(2 * time.Second) // until all clients have acknowledged
	}
	f.editCPU, f.relayEditCPU = (s.cpu()-used)/servedEdits, (s.relayCPU()-f.relayEditCPU)/servedEdits
	f.memory = memory(s.Process.Pid, "VmHWM")
	return f, nil
}

// await receives n times from told. It returns the first error from failed.
func await(ctx context.Context, told <-chan time.Time, n int, failed <-chan error) error {
	for range n {
		select {
		case <-told:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// follow is a client: it subscribes to all clusters, sends the time of the first response and of each edit to
// told, and acknowledges each response.
func (s *contender) follow(ctx context.Context, delta bool, told chan<- time.Time) error {
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.ForceCodecV2(rawCodec{}), grpc.WaitForReady(true)))
	if err != nil {
		return err
	}
	defer conn.Close()
	method := "StreamAggregatedResources"
	if delta {
		method = "DeltaAggregatedResources"
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/"+method)
	if err != nil {
		return err
	}
	version, nonce, had := "", "", 0
	for {
		if err := stream.SendMsg(request(delta, version, nonce)); err != nil {
			return err
		}
		var r raw
		if err := stream.RecvMsg(&r); err != nil {
			return err
		}
		resources := 0
		if version, nonce, resources, err = read(r); err != nil {
			return err
		}
		if had += resources; had >= s.n {
			told <- time.Now()
		}
	}
}

// request returns the first request of a client or, with a nonce, an ACK.
func request(delta bool, version, nonce string) raw {
	node := &corev3.Node{Id: "client"}
	if nonce != "" {
		node = nil
	}
	var m proto.Message = &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: xds.Cluster.URL(), VersionInfo: version, ResponseNonce: nonce}
	if delta {
		m = &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: xds.Cluster.URL(), ResponseNonce: nonce}
	}
	data, _ := proto.Marshal(m) // no error: the strings are UTF-8
	return data
}

// read reads a response of either variant of the protocol: both have the same field numbers. read counts the
// resources, and does not decode them, which would take most of this machine's time.
func read(r raw) (version, nonce string, resources int, err error) {
	for len(r) > 0 {
		number, kind, n := protowire.ConsumeTag(r)
		if n < 0 {
			return "", "", 0, protowire.ParseError(n)
		}
		r = r[n:]
		size := protowire.ConsumeFieldValue(number, kind, r)
		if size < 0 {
			return "", "", 0, protowire.ParseError(size)
		}
		text, _ := protowire.ConsumeBytes(r[:size])
		switch number {
		case 1:
			version = string(text)
		case 2:
			resources++
		case 5:
			nonce = string(text)
		}
		r = r[size:]
	}
	return version, nonce, resources, nil
}

// raw is a message in wire format.
type raw []byte

// rawCodec is a codec of gRPC for raw messages.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(raw)
	if !ok {
		return nil, errors.New("no raw message")
	}
	return mem.BufferSlice{mem.SliceBuffer(r)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*raw) = data.Materialize()
	return nil
}
