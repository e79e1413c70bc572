package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/internal/addr"
	"xdspub/setup/grpcboot"
)

func bootstrapGRPCCommand() *cli.Command {
	return &cli.Command{
		Name:      "grpc",
		Usage:     "write the bootstrap of gRPC clients and servers, or show the listener that a program asks for",
		ArgsUsage: "[SRC]",
		Description: `Prints a bootstrap by which gRPC programs find xdspub serve: give its path to them in
GRPC_XDS_BOOTSTRAP. With --resolve it reads the bootstrap that a program started here has, by that
variable or by GRPC_XDS_BOOTSTRAP_CONFIG, and prints which listener the program asks for; with SRC,
whether that source tree has it. The options and settings by which serve reads SRC are for this
command too.

Examples:
  xdspub bootstrap grpc --server 127.0.0.1:18000 > grpc.json
  xdspub bootstrap grpc --server xds.example:18000 --tls-ca /etc/xds/ca.pem \
    --tls-cert /etc/xds/tls.pem --tls-key /etc/xds/tls.key --output grpc.json
  GRPC_XDS_BOOTSTRAP=grpc.json xdspub bootstrap grpc --resolve xds:///greeter config/
  GRPC_XDS_BOOTSTRAP=grpc.json xdspub bootstrap grpc --resolve 0.0.0.0:8080 config/

Exit status: 0 written, or asked for and there; 1 errors in the bootstrap or in SRC, or the listener
is missing; 2 wrong usage; 3 could not run.`,
		Flags:  options(settings.BootstrapGRPC()),
		Action: action(bootstrapGRPC),
	}
}

func bootstrapGRPC(c *call) error {
	if err := noSourceFlags(c); err != nil {
		return err
	}
	if c.Resolve.Given() {
		return resolveGRPC(c)
	}
	if c.NArg() > 0 {
		return usagef("bootstrap grpc takes a source tree only with --resolve: write --output FILE to name the file to write")
	}
	config, err := grpcConfig(c)
	if err != nil {
		return err
	}
	text, err := config.JSON()
	if err != nil {
		return &exit{exitUsage, err}
	}
	return writeGRPC(c, text)
}

// writeGRPC judges the text of a bootstrap, and writes it if there is no error.
func writeGRPC(c *call, text []byte) error {
	checked := check.GRPCBootstrap(grpcboot.Parse(outputName(c), text))
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	return replaceOutput(c, text, 0o644)
}

// grpcConfig returns the bootstrap that flags describe.
func grpcConfig(v *call) (*grpcboot.Config, error) {
	if len(v.Servers.Value) == 0 {
		return nil, usagef("--server is required: see %s", helpFor("bootstrap grpc"))
	}
	o := &grpcboot.Config{ServerTemplate: v.ServerListener.Value, ClientTemplate: v.ClientListener.Value}
	creds, err := channelCredentials(v)
	if err != nil {
		return nil, err
	}
	for _, address := range v.Servers.Value {
		s, err := xdsServer(v, address, creds)
		if err != nil {
			return nil, err
		}
		o.Servers = append(o.Servers, s)
	}
	if o.Node, err = grpcNode(v); err != nil {
		return nil, err
	}
	if o.Providers, err = providers(v); err != nil {
		return nil, err
	}
	o.Authorities, err = authorities(v, creds)
	return o, err
}

// xdsServer returns a server. xdsServer makes the path of a socket absolute, because programs start in any
// directory.
func xdsServer(v *call, address string, creds []grpcboot.Credentials) (grpcboot.Server, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok && !strings.HasPrefix(path, "//") {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return grpcboot.Server{}, err
		}
		address = "unix:" + absolute
	}
	return grpcboot.Server{URI: address, Credentials: creds, Features: v.ServerFeature.Value}, nil
}

// channelCredentials returns the credentials with which programs connect to servers.
func channelCredentials(v *call) (list []grpcboot.Credentials, err error) {
	files, err := tlsFiles(v)
	if err != nil {
		return nil, err
	}
	types := v.ChannelCreds.Value
	switch {
	case len(types) > 0:
	case files != nil:
		types = []string{"tls"}
	case slices.ContainsFunc(addresses(v), elsewhere):
		return nil, usagef("--channel-creds is required for a server on another machine: use tls, or insecure if nobody else can read what is sent")
	default:
		types = []string{"insecure"}
	}
	if files != nil && !slices.Contains(types, "tls") {
		return nil, usagef("--tls-ca, --tls-cert and --refresh-interval are for --channel-creds tls, and --channel-creds is %s", strings.Join(types, ", "))
	}
	if i := slices.IndexFunc(addresses(v), isSocket); i >= 0 && types[0] == "tls" {
		return nil, usagef("%s is a Unix socket, which has no TLS: write --channel-creds insecure, and a bootstrap of its own for "+
			"other servers", addresses(v)[i])
	}
	for _, t := range types {
		creds := grpcboot.Credentials{Type: t}
		if t == "tls" {
			creds.Config = files
		}
		list = append(list, creds)
	}
	return list, nil
}

// addresses returns the addresses of all servers.
func addresses(v *call) []string {
	list := v.Servers.Value
	for _, of := range v.AuthorityServer.Value {
		_, address, _ := strings.Cut(of, "=")
		list = append(list, address)
	}
	return list
}

func isSocket(address string) bool { return strings.HasPrefix(address, "unix:") }

// elsewhere reports whether the server at an address may be on another machine.
func elsewhere(address string) bool {
	a, err := addr.Parse(address)
	return err != nil && !isSocket(address) || err == nil && !a.Local()
}

// tlsFiles returns the files of TLS; nil if no option names one.
func tlsFiles(v *call) (*grpcboot.Files, error) {
	f := &grpcboot.Files{CA: v.TLSCA.Value, Certificate: v.TLSCert.Value, Key: v.TLSKey.Value}
	if err := absolute(&f.CA, &f.Certificate, &f.Key); err != nil {
		return nil, err
	}
	if v.RefreshInterval.Given() {
		interval := v.RefreshInterval.Value
		if interval <= 0 {
			return nil, v.RefreshInterval.Invalid(interval.String(), "write a time above 0s")
		}
		f.RefreshInterval = seconds(interval)
	}
	if *f == (grpcboot.Files{}) {
		return nil, nil
	}
	return f, nil
}

// absolute makes the paths absolute, except empty ones.
func absolute(paths ...*string) (err error) {
	for _, p := range paths {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	return nil
}

// seconds returns a time in the JSON form of google.protobuf.Duration.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// grpcNode returns the node of programs.
func grpcNode(v *call) (n grpcboot.Node, err error) {
	n = grpcboot.Node{ID: v.NodeID.Value, Cluster: v.NodeCluster.Value}
	if locality := v.NodeLocality.Value; locality != "" {
		parts, err := localityParts(v, locality)
		if err != nil {
			return n, err
		}
		n.Locality = grpcboot.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
	}
	metadata, err := pairs(v.NodeMetadata, "KEY=VALUE")
	if err == nil && len(metadata) > 0 {
		n.Metadata, err = json.Marshal(metadata)
	}
	return n, err
}

// providers returns the certificate providers.
func providers(v *call) (map[string]grpcboot.Provider, error) {
	given, err := pairs(v.CertificateProvider, "NAME=CERT:KEY:CA")
	if err != nil {
		return nil, err
	}
	all := make(map[string]grpcboot.Provider)
	for name, files := range given {
		parts := strings.Split(files, ":")
		if len(parts) != 3 {
			return nil, v.CertificateProvider.Invalid(name+"="+files, "write NAME=CERT:KEY:CA, or NAME=::CA without a certificate")
		}
		f := &grpcboot.Files{Certificate: parts[0], Key: parts[1], CA: parts[2]}
		if err := absolute(&f.Certificate, &f.Key, &f.CA); err != nil {
			return nil, err
		}
		all[name] = grpcboot.Provider{Plugin: grpcboot.FileWatcher, Config: f}
	}
	return all, nil
}

// authorities returns the authorities of --authority, with the servers of --authority-server.
func authorities(v *call, creds []grpcboot.Credentials) (map[string]grpcboot.Authority, error) {
	all := make(map[string]grpcboot.Authority)
	for _, text := range v.Authority.Value {
		name, template, _ := strings.Cut(text, "=")
		if _, twice := all[name]; twice {
			return nil, v.Authority.Invalid(text, name+" is given twice")
		}
		all[name] = grpcboot.Authority{Template: template}
	}
	for _, text := range v.AuthorityServer.Value {
		name, address, ok := strings.Cut(text, "=")
		a, known := all[name]
		switch {
		case !ok:
			return nil, v.AuthorityServer.Invalid(text, "write NAME=ADDR")
		case !known:
			return nil, v.AuthorityServer.Invalid(text, "add --authority "+name)
		}
		s, err := xdsServer(v, address, creds)
		if err != nil {
			return nil, err
		}
		a.Servers = append(a.Servers, s)
		all[name] = a
	}
	return all, nil
}

// The variables by which gRPC finds its bootstrap: bootstrapPath has its path, bootstrapText its text.
// bootstrapPath wins.
const (
	bootstrapPath = "GRPC_XDS_BOOTSTRAP"
	bootstrapText = "GRPC_XDS_BOOTSTRAP_CONFIG"
)

// grpcFromEnvironment returns the bootstrap that gRPC programs read. from describes how they find the
// bootstrap.
func grpcFromEnvironment() (r *grpcboot.Result, from string, err error) {
	path, set := os.LookupEnv(bootstrapPath)
	text := os.Getenv(bootstrapText)
	switch {
	case path == "" && text == "":
		return nil, "", usagef("neither %s nor %s is set: write %s=FILE in front of the command", bootstrapPath, bootstrapText, bootstrapPath)
	case set && path == "":
		from = fmt.Sprintf("; %s is set and empty, which clients on C-core (C++, Python, Ruby, PHP) take for a path: unset it", bootstrapPath)
		return grpcboot.Parse(bootstrapText, []byte(text)), "in " + bootstrapText + from, nil
	case path == "":
		return grpcboot.Parse(bootstrapText, []byte(text)), "in " + bootstrapText, nil
	case text != "":
		from = "; " + bootstrapText + " is set too, and not read"
	}
	r, err = grpcboot.Read(path)
	return r, path + ", by " + bootstrapPath + from, err
}

// isAddress reports whether a target is the address of a server.
func isAddress(target string) bool {
	_, err := netip.ParseAddrPort(target)
	return err == nil
}
