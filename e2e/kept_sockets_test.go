package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"xdspub/tools/envoytest"
)

// TestKeptSockets shows changes of a listener that Envoy accepts, but does not apply to the open socket. After the
// listener was removed and its socket is closed, Envoy applies the change.
func TestKeptSockets(t *testing.T) {
	envoytest.Binary(t)
	for _, c := range []struct {
		name           string
		address, field string // of the listener; the test fills in the port and the pipe
		becomes        string // the new address, if the address changes
		with           string // the new field, if the field changes
		probe          func(t *testing.T, port int, pipe string) string
		stays, anew    string // the result of the probe after the change, and with a new socket
	}{
		{
			name: "bound", address: `socket_address: {address: 127.0.0.1, port_value: %[1]d}`, field: "bind_to_port: false", with: "",
			probe: connects, stays: "refused", anew: "connects",
		},
		{
			name: "not bound", address: `socket_address: {address: 127.0.0.1, port_value: %[1]d}`, field: "bind_to_port: true", with: "bind_to_port: false",
			probe: connects, stays: "connects", anew: "refused",
		},
		{
			name: "IPv4 too", address: `socket_address: {address: "::", port_value: %[1]d}`, becomes: `socket_address: {address: "::", port_value: %[1]d, ipv4_compat: true}`,
			probe: connects, stays: "refused", anew: "connects",
		},
		{
			name: "multipath TCP", address: `socket_address: {address: 127.0.0.1, port_value: %[1]d}`, field: "enable_mptcp: false", with: "enable_mptcp: true",
			probe: multipath, stays: "TCP", anew: "MPTCP",
		},
		{
			name: "mode of a pipe", address: `pipe: {path: %[2]q, mode: 448}`, becomes: `pipe: {path: %[2]q, mode: 384}`,
			probe: mode, stays: "-rwx------", anew: "-rw-------",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			port, pipe := envoytest.FreePort(t), filepath.Join(socketDir(t), "pipe")
			listens := func(address, field string) map[string]string {
				return map[string]string{"all.yaml": document("envoy.config.listener.v3.Listener",
					`name: main, address: {`+fmt.Sprintf(address+"%[3]s", port, pipe, "")+`}, filter_chains: [{filters: [{name: echo, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]`+more([]string{field}))}
			}
			s := newFixture(t, nil, "--disable", "bind-to-port-changed", "--allow-removal")
			s.render(t, listens(c.address, c.field))
			s.startEnvoy(t)
			if c.becomes == "" {
				c.becomes = c.address
			}
			s.render(t, listens(c.becomes, c.with))
			s.tookWhatItReads(t)
			if got := c.probe(t, port, pipe); got != c.stays {
				t.Errorf("after the change: %s, want %s", got, c.stays)
			}
			s.render(t, map[string]string{"all.yaml": staticCluster("web", 1)})
			s.tookWhatItReads(t)
			s.render(t, listens(c.becomes, c.with))
			s.tookWhatItReads(t)
			becomes(t, "published anew", c.anew, func() string { return c.probe(t, port, pipe) })
		})
	}
}

// socketDir returns a directory with a path short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "xdspub-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func connects(t *testing.T, port int, _ string) string {
	t.Helper()
	conn, err := net.Dial("tcp4", address(port))
	if err != nil {
		return "refused"
	}
	conn.Close()
	return "connects"
}

// multipath returns the protocol of a connection whose client asks for multipath TCP.
func multipath(t *testing.T, port int, _ string) string {
	t.Helper()
	var l net.ListenConfig
	l.SetMultipathTCP(true)
	own, err := l.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if protocol(t, own.Addr().String()) != "MPTCP" {
		t.Skip("the kernel has no multipath TCP")
	}
	return protocol(t, address(port))
}

func protocol(t *testing.T, address string) string {
	t.Helper()
	var d net.Dialer
	d.SetMultipathTCP(true)
	conn, err := d.DialContext(context.Background(), "tcp4", address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	used, err := conn.(*net.TCPConn).MultipathTCP()
	if err != nil {
		t.Fatal(err)
	}
	return map[bool]string{true: "MPTCP", false: "TCP"}[used]
}

func mode(t *testing.T, _ int, pipe string) string {
	t.Helper()
	info, err := os.Stat(pipe)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Mode().Perm())
}
