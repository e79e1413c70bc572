// Package grpcboot writes and judges the bootstrap of a gRPC client or server: the JSON document
// that says where its xDS servers are, who it is, and how its targets become names of listeners.
// The format is gRPC's (doc/grpc_xds_bootstrap_format.md of its repository); where the document
// leaves something open, what grpc-go and C-core do with it decides.
//
//	config, findings := grpcboot.Parse("bootstrap.json", data)
//	resolved, err := config.Target("xds:///greeter")
package grpcboot

import (
	"bytes"
	"encoding/json"
	"fmt"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/source/load"
)

// Config is a bootstrap.
type Config struct {
	// Servers are tried in order: a server is asked if all servers before are down.
	Servers []Server `json:"xds_servers"`
	Node    Node     `json:"node"`
	// Providers are the certificate providers, by the names that resources use.
	Providers map[string]Provider `json:"certificate_providers,omitempty"`
	// ServerTemplate makes the name of the listener of a gRPC server. %s is its IP:port.
	ServerTemplate string `json:"server_listener_resource_name_template,omitempty"`
	// ClientTemplate makes the name of the listener of a target without an authority. %s is the
	// path of the target; "" means %s.
	ClientTemplate string `json:"client_default_listener_resource_name_template,omitempty"`
	// Authorities are what targets and xdstp names with an authority need, by its name.
	Authorities map[string]Authority `json:"authorities,omitempty"`
}

// Server is an xDS server.
type Server struct {
	// URI is a target of gRPC, such as 127.0.0.1:18000, dns:///xds:18000 or unix:/run/xds.sock.
	URI string `json:"server_uri"`
	// Credentials are in the order of preference: a client uses the first that it knows.
	Credentials []Credentials `json:"channel_creds"`
	Features    []string      `json:"server_features,omitempty"`
	// CallCredentials go with each call to the server: a client uses all that it knows.
	CallCredentials []CallCredentials `json:"call_creds,omitempty"`
}

// Credentials are those of a channel: insecure, tls or google_default.
type Credentials struct {
	Type string `json:"type"`
	// Config is for tls; nil trusts the roots of the system.
	Config *Files `json:"config,omitempty"`
}

// CallCredentials are those of a call (gRFC A97).
type CallCredentials struct {
	Type string `json:"type"`
	// Config is for jwt_token_file.
	Config *Token `json:"config,omitempty"`
}

// Token is a file with a JSON Web Token.
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

// Node is who the client is.
type Node struct {
	ID      string `json:"id,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Locality is always written: gRPC for Node refuses a bootstrap without it.
	Locality Locality        `json:"locality"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Locality is where the client runs.
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
	// Template makes the name of the listener of a target with this authority. "" means
	// xdstp://AUTHORITY/envoy.config.listener.v3.Listener/%s.
	Template string `json:"client_listener_resource_name_template,omitempty"`
	// Servers default to the Servers of Config.
	Servers []Server `json:"xds_servers,omitempty"`
}

// FileWatcher is the only plugin of certificate providers that gRPC has.
const FileWatcher = "file_watcher"

// JSON returns the bootstrap as a file. Equal values give equal bytes.
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

// maxBytes bounds a bootstrap.
const maxBytes = 1 << 20

// maxFindings bounds the findings about a bootstrap, of errors and of warnings.
const maxFindings = 1000

// maxDepth is how many levels C-core reads.
const maxDepth = 255

// Result is a parsed bootstrap with its findings.
type Result struct {
	// Config lacks the parts that could not be read.
	Config *Config
	// Diagnostics are sorted.
	Diagnostics diag.List
	// Line returns the source line at a position.
	Line func(diag.Position) (string, bool)
}

// Read reads and judges a file. The error is not nil if the file can't be read.
func Read(path string) (*Result, error) {
	data, err := safefile.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(path, data), nil
}

// Parse judges a bootstrap. name is what findings give as their file.
func Parse(name string, data []byte) *Result {
	doc, findings := load.ParseJSON(name, data)
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
