package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"xdspub/tools/certs"
)

// TestGRPCBootstrap: a grpc-go client completes a call with the output of bootstrap grpc, whatever security the
// server requires.
func TestGRPCBootstrap(t *testing.T) {
	ca, dir := certs.NewAuthority(t), t.TempDir()
	serverCert, serverKey := ca.Sign(1, "127.0.0.1")
	clientCert, clientKey := ca.Sign(2, "spiffe://test/client")
	for name, data := range map[string][]byte{"ca.pem": ca.PEM(), "server.pem": serverCert, "server.key": serverKey, "client.pem": clientCert, "client.key": clientKey} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	serveTLS := []string{"--tls-cert", file("server.pem"), "--tls-key", file("server.key")}
	byTLS := []string{"--tls-ca", file("ca.pem"), "--refresh-interval", "1m"}
	for name, by := range map[string]struct{ serve, client []string }{
		"insecure": {},
		"TLS":      {serveTLS, byTLS},
		"mTLS": {
			append(serveTLS[:4:4], "--client-ca", file("ca.pem"), "--allow-node", "client=spiffe://test/client"),
			append(byTLS[:4:4], "--tls-cert", file("client.pem"), "--tls-key", file("client.key")),
		},
		"TLS, with a choice":    {serveTLS, append(byTLS[:4:4], "--channel-creds", "tls", "--channel-creds", "insecure")},
		"a server that is down": {client: []string{"--server", "127.0.0.1:1"}},
		"an authority":          {client: []string{"--client-listener", "xdstp://prod/envoy.config.listener.v3.Listener/%s", "--authority", "prod"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTree(t, map[string]string{"listener.yaml": apiListener, "prod.yaml": prodListener, "api.yaml": apiCluster("first", newBackend(t, "blue"))})
			s.start(t, by.serve...)
			call := goClient(t, s.grpcBootstrap(t, "client", by.client...))
			if backend, err := call(); err != nil || backend != "blue" {
				t.Errorf("%q answers: %v", backend, err)
			}
		})
	}
}
