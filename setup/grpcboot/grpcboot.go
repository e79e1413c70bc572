// Package grpcboot writes and judges the bootstrap of a gRPC client or server. The bootstrap is a JSON document with
// the addresses of the xDS servers, the identity of the client, and the templates that turn targets into names of
// listeners. The file doc/grpc_xds_bootstrap_format.md in gRPC's repository describes the format. For questions that
// it leaves open, package grpcboot follows grpc-go and C-core.
//
//	result := grpcboot.Parse("bootstrap.json", data)
//	resolved, err := result.Config.Target("xds:///greeter")
package grpcboot

import (
	"bytes"
	"encoding/json"
	"fmt"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/source/decode"
)

// Config is a bootstrap of gRPC.
type Config struct {
	// Servers are the xDS servers. A client asks a server only if all servers before it are down.
	Servers []Server `json:"xds_servers"`
	Node    Node     `json:"node"`
	// Providers maps the names that resources use to certificate providers.
	Providers map[string]Provider `json:"certificate_providers,omitempty"`
	// ServerTemplate is the name of the listener that a gRPC server subscribes to. %s stands for the IP:port of the
	// gRPC server.
	ServerTemplate string `json:"server_listener_resource_name_template,omitempty"`
	// ClientTemplate is the name of the listener for a target without an authority. %s stands for the path of the
	// target. "" means the template %s.
	ClientTemplate string `json:"client_default_listener_resource_name_template,omitempty"`
	// Authorities maps the names of authorities to their settings. Targets and xdstp names with an authority need
	// its settings.
	Authorities map[string]Authority `json:"authorities,omitempty"`
}

// Server is an xDS server.
type Server struct {
	// URI is the gRPC target of the server, such as 127.0.0.1:18000, dns:///xds:18000 or unix:/run/xds.sock.
	URI string `json:"server_uri"`
	// Credentials are in the order of preference. A client uses the first of a type that it knows.
	Credentials []Credentials `json:"channel_creds"`
	Features    []string      `json:"server_features,omitempty"`
	// CallCredentials are sent with each call to the server. A client uses all of the types that it knows.
	CallCredentials []CallCredentials `json:"call_creds,omitempty"`
}

// Credentials are the credentials of a channel. Type is insecure, tls or google_default.
type Credentials struct {
	Type string `json:"type"`
	// Config is for the type tls. Nil means that the client trusts the roots of the system.
	Config *Files `json:"config,omitempty"`
}

// CallCredentials are the credentials of a call (gRFC A97).
type CallCredentials struct {
	Type string `json:"type"`
	// Config is for the type jwt_token_file.
	Config *Token `json:"config,omitempty"`
}

// Token names a file with a JSON Web Token.
type Token struct {
	File string `json:"jwt_token_file"`
}

// Files are the files of TLS. gRPC reads them again after each RefreshInterval, such as 600s.
type Files struct {
	CA              string `json:"ca_certificate_file,omitempty"`
	Certificate     string `json:"certificate_file,omitempty"`
	Key             string `json:"private_key_file,omitempty"`
	RefreshInterval string `json:"refresh_interval,omitempty"`
}

// Node identifies the client.
type Node struct {
	ID      string `json:"id,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Locality is written even if it is empty, because gRPC for Node refuses a bootstrap without it.
	Locality Locality        `json:"locality"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Locality is the place of the client.
type Locality struct {
	Region  string `json:"region,omitempty"`
	Zone    string `json:"zone,omitempty"`
	SubZone string `json:"sub_zone,omitempty"`
}

// Provider is a certificate provider.
type Provider struct {
	Plugin string `json:"plugin_name"`
	Config *Files `json:"config,omitempty"`
}

// Authority has the settings for names of one authority.
type Authority struct {
	// Template is the name of the listener for a target with this authority. %s stands for the path of the target.
	// "" means xdstp://AUTHORITY/envoy.config.listener.v3.Listener/%s.
	Template string `json:"client_listener_resource_name_template,omitempty"`
	// Servers are the servers of this authority. Nil means the Servers of Config.
	Servers []Server `json:"xds_servers,omitempty"`
}

// FileWatcher is the name of the only plugin for certificate providers that gRPC has.
const FileWatcher = "file_watcher"

// JSON returns the content of a file with the bootstrap. Equal values give equal bytes.
func (c *Config) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("gRPC bootstrap: %w", err)
	}
	return b.Bytes(), nil
}

// maxBytes is the size, in bytes, of the largest bootstrap that this package reads.
const maxBytes = 1 << 20

// maxFindings is the largest number of errors, and of warnings, about a bootstrap.
const maxFindings = 1000

// maxDepth is the largest depth of JSON that C-core reads.
const maxDepth = 255

// Result is a parsed bootstrap with its findings.
type Result struct {
	// Config is the bootstrap without the parts that could not be read.
	Config *Config
	// Diagnostics are the findings, sorted.
	Diagnostics diag.List
	// Line returns the source line at a position.
	Line func(diag.Position) (string, bool)
}

// Read reads and judges a file. It returns an error if the file can't be read.
func Read(path string) (*Result, error) {
	data, err := safefile.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(path, data), nil
}

// Parse judges a bootstrap. name is the name of the file in findings.
func Parse(name string, data []byte) *Result {
	doc, findings := decode.ParseJSON(name, data)
	r := &Result{Config: new(Config), Diagnostics: findings, Line: doc.Line}
	if findings.HasErrors() {
		return r
	}
	p := parser{doc: doc, found: diag.NewBounded(maxFindings)}
	r.Config = p.config(value{raw: bytes.TrimSpace(data)})
	if doc.Depth() > maxDepth {
		p.refuse("", fmt.Sprintf("the document is nested more than %d levels deep, which clients on C-core refuse", maxDepth), "")
	}
	r.Diagnostics = p.found.List(diag.Position{File: name}, "in this file").Sort()
	return r
}
