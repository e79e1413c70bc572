package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/internal/crash"
	"xdspub/internal/grpcdial"
	"xdspub/source/load"
	"xdspub/source/upstream"
)

// onlyTrees are the options about the files of a source tree.
var onlyTrees = []string{
	"ignore", "allow-path", "target", "only", "changed-since", "root", "stdin-filename", "fix", "fix-unsafe", "diff", "baseline", "write-baseline", "poll",
}

// isOnlyTrees reports whether an option of the command is for source trees alone. --root of import is for all sources.
func isOnlyTrees(c *call, r settings.Row) bool {
	isRootOfEnvoy := c.Command.Name == "import" && r.Name() == "root"
	return slices.Contains(onlyTrees, r.Name()) && !isRootOfEnvoy
}

// checkRemote returns an error if the command, or one of its options, does not allow the source.
func checkRemote(c *call, source string) error {
	if settings.IsStore(source) {
		return checkStore(c, source)
	}
	if c.Command.Name == "diff" { // see checkSides
		return nil
	}
	if !settings.IsRemote(source) {
		isImport := c.Command.Name == "import"
		of := append(settings.Upstream(), settings.MaxStale(), settings.AggregateBy())
		name := onLine(c, of)
		if isImport && isOnLine(c, "param") {
			name = "param"
		}
		if name != "" && isRowOf(c, "node-from") {
			return usagef("--%s is for a control plane: write xds://HOST:PORT or xds+unix:PATH instead of %s", name, source)
		}
		if strings.Contains(source, "://") && isRowOf(c, "node-from") && !(isImport && isAdmin(source)) {
			return usagef("%q is no source: write a path, xds://HOST:PORT, xds+unix:PATH or etcd://HOST:PORT/PREFIX", source)
		}
		return noStore(c)
	}
	if !isRowOf(c, "node-from") {
		return usagef("%s reads no control plane: validate, render, watch, serve, diff and import read %s", c.Command.Name, source)
	}
	for _, r := range rowsOf(c.Command) {
		if isOnlyTrees(c, r) && isOnLine(c, r.Name()) {
			return usagef("--%s is for a source tree, and %s is a control plane", r.Name(), source)
		}
	}
	return nil
}

// isRowOf reports whether the command has an option.
func isRowOf(c *call, name string) bool {
	return slices.ContainsFunc(rowsOf(c.Command), func(r settings.Row) bool { return r.Name() == name })
}

// isOnLine reports whether the command line gives an option. A variable may be for other commands.
func isOnLine(c *call, name string) bool {
	return slices.ContainsFunc(c.Line, func(g settings.Given) bool { return g.Row.Name() == name })
}

// onLine returns the name of the first of rows that the command line gives; empty for none.
func onLine(c *call, rows []settings.Row) string {
	for _, r := range rows {
		if isOnLine(c, r.Name()) {
			return r.Name()
		}
	}
	return ""
}

// follow sets v.remote if the source is a control plane or a store.
func follow(v *call, source string, log *event.Log) error {
	if !settings.IsRemote(source) {
		return nil
	}
	if err := errors.Join(v.MaxStale.Check(), v.UpstreamTransport.Check()); err != nil {
		return err
	}
	var usual []string
	if slices.Contains([]string{"serve", "diff", "import"}, v.Command.Name) {
		usual = []string{check.Streams}
	}
	with, err := v.withFile(source)
	if err != nil {
		return err
	}
	of, err := sourceOptions(with, source, usual...)
	if err != nil {
		return err
	}
	if settings.IsStore(source) {
		return followStore(v, source, of, log)
	}
	servers, authorities, err := servers(v, source)
	if err != nil {
		return err
	}
	o := upstream.Options{
		Name: source, Servers: servers, Authorities: authorities, Envoy: of.Envoy, Streams: of.Streams(),
		Transport: upstream.Transport(v.UpstreamTransport.Value), Judge: of.OfPart, Budget: upstream.NewBudget(mostRelayed), Log: log,
	}
	if v.Command.Name != "diff" { // --param of diff is about the source tree
		o.Params = of.Client.Parameters
	}
	if err := identify(v, of, &o); err != nil {
		return err
	}
	if v.QuietPeriod.Given() || v.QuietPeriod.InFile() { // the default is for files: a program may write a file in parts
		o.QuietPeriod = v.QuietPeriod.Value
	}
	v.upstream = o
	v.remote = upstream.New(o)
	return nil
}

// runRemote runs the remote of v on a goroutine until ctx ends.
func runRemote(ctx context.Context, v *call, log *event.Log) {
	if v.remote != nil {
		go crash.Again(ctx.Done(), func() { v.remote.Run(ctx) }, log.Crashed)()
	}
}

// servers returns the servers of a source, and the servers of each xdstp authority, with the files for TLS.
func servers(v *call, source string) (list []upstream.Server, of map[string][]upstream.Server, err error) {
	if v.UpstreamCert.Given() != v.UpstreamKey.Given() {
		return nil, nil, usagef("--upstream-cert and --upstream-key belong together: give both")
	}
	if path, ok := strings.CutPrefix(source, settings.XDSUnix); ok {
		if _, err := addr.Parse("unix:" + path); err != nil {
			return nil, nil, usagef("%q has no path: write xds+unix:PATH", source)
		}
		if strings.HasPrefix(path, "//") {
			return nil, nil, usagef("%q is no URL of a Unix socket: write xds+unix:PATH, with one slash before an absolute path", source)
		}
		list = []upstream.Server{{Address: "unix:" + path}}
	} else {
		ok := true
		for address := range strings.SplitSeq(strings.TrimPrefix(source, settings.XDS), ",") {
			is, err := addr.Parse(address)
			if err != nil || is.Network != "tcp" || !strings.Contains(address, ":") {
				return nil, nil, usagef("%q has no address of a server: write xds://HOST:PORT, or xds://HOST:PORT,HOST:PORT for several", source)
			}
			if list, ok = add(list, is); !ok {
				return nil, nil, usagef("%q has the server %s twice: write each server once", source, is.Name)
			}
		}
	}
	if of, err = upstreamAuthorities(v); err != nil {
		return nil, nil, err
	}
	return list, of, withTLS(v, append(slices.Collect(maps.Values(of)), list)...)
}

// upstreamAuthorities returns the servers of each xdstp authority.
func upstreamAuthorities(v *call) (map[string][]upstream.Server, error) {
	all := make(map[string][]upstream.Server)
	for _, text := range v.UpstreamAuthority.Value {
		name, address, ok := strings.Cut(text, "=")
		is, err := addr.Parse(address)
		switch {
		case !ok, name == "", err != nil, !strings.Contains(address, ":"):
			return nil, v.UpstreamAuthority.Invalid(text, "write NAME=HOST:PORT or NAME=unix:PATH")
		case strings.ContainsAny(name, "/?#"):
			return nil, v.UpstreamAuthority.Invalid(text, "NAME is the text between xdstp:// and the next slash")
		}
		if all[name], ok = add(all[name], is); !ok {
			return nil, v.UpstreamAuthority.Invalid(text, "it is given twice")
		}
	}
	return all, nil
}

// add adds the server at an address to a list. ok is false if the list has the server.
func add(list []upstream.Server, is addr.Address) (_ []upstream.Server, ok bool) {
	s := upstream.Server{Address: is.Name}
	if is.Network == "unix" {
		s.Address = "unix:" + is.Name
	}
	if slices.Contains(list, s) {
		return list, false
	}
	return append(list, s), true
}

// withTLS gives servers the files of the options for TLS, and checks the files. A server with a Unix socket gets no
// files.
func withTLS(v *call, lists ...[]upstream.Server) error {
	given := settings.FirstGiven(v.Settings, slices.DeleteFunc(settings.Upstream(), func(r settings.Row) bool {
		return !slices.Contains([]string{"upstream-ca", "upstream-cert", "upstream-key", "upstream-server-name"}, r.Name())
	}))
	used := false
	for _, list := range lists {
		for i := range list {
			s := &list[i]
			if given != "" && !strings.HasPrefix(s.Address, "unix:") {
				used = true
				s.TLS = &grpcdial.Files{CA: v.UpstreamCA.Value, Cert: v.UpstreamCert.Value, Key: v.UpstreamKey.Value, ServerName: v.UpstreamServerName.Value}
			}
			if _, err := grpcdial.New(s.Address, "--upstream", s.TLS); err != nil {
				return err
			}
		}
	}
	if given != "" && !used {
		return usagef("--%s is for xds://HOST:PORT: a Unix socket has no TLS", given)
	}
	return nil
}

// identify sets o.Node as Envoy would send it. From the bootstraps, identify also sets the names of the runtime layers,
// and for a singleton transport the clusters that lead to the control plane.
func identify(v *call, of check.Options, o *upstream.Options) error {
	node := &corev3.Node{}
	for _, path := range []string{v.NodeFrom.Value, v.Bootstrap.Value} {
		if path == "" {
			continue
		}
		b, list, err := load.Bootstrap(path, of.Envoy)
		if err != nil {
			return fmt.Errorf("read the bootstrap: %w", err)
		}
		if list.HasErrors() {
			return fmt.Errorf("read the bootstrap: %s", list[0])
		}
		if path == v.NodeFrom.Value {
			node = cmp.Or(b.GetNode(), node)
			o.Clusters = o.Transport.Clusters(b)
		}
		o.Runtime = append(o.Runtime, layers(b)...)
	}
	if err := overrideNode(v, node); err != nil {
		return err
	}
	if node.GetId() == "" {
		return usagef("a control plane needs a node: give --node-from FILE, a bootstrap of the Envoy, or --node-id ID")
	}
	node.UserAgentName = "envoy"
	releases := check.EnvoyReleases()
	release := releases[len(releases)-1]
	if of.Envoy != nil {
		release = of.Envoy.Name
	}
	if version := semantic(release); version != nil {
		node.UserAgentVersionType = &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{Version: version}}
	}
	slices.Sort(o.Runtime)
	o.Node, o.Runtime = node, slices.Compact(o.Runtime)
	return nil
}

// semantic returns a version such as v1.40.0; nil for another text.
func semantic(text string) *typev3.SemanticVersion {
	var v typev3.SemanticVersion
	if n, _ := fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d.%d.%d", &v.MajorNumber, &v.MinorNumber, &v.Patch); n < 2 {
		return nil
	}
	return &v
}

// layers returns the names of the runtime layers that a bootstrap gets by RTDS.
func layers(b *bootstrapv3.Bootstrap) (names []string) {
	for _, layer := range b.GetLayeredRuntime().GetLayers() {
		if rtds := layer.GetRtdsLayer(); rtds != nil {
			names = append(names, rtds.GetName())
		}
	}
	return names
}

// overrideNode sets the fields of a node that options give.
func overrideNode(v *call, node *corev3.Node) error {
	if v.NodeID.Given() {
		node.Id = v.NodeID.Value
	}
	if v.NodeCluster.Given() {
		node.Cluster = v.NodeCluster.Value
	}
	if locality := v.NodeLocality.Value; locality != "" {
		parts, err := localityParts(v, locality)
		if err != nil {
			return err
		}
		node.Locality = &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
	}
	metadata, err := pairs(v.NodeMetadata, "KEY=VALUE")
	for key, value := range metadata {
		if node.Metadata == nil {
			node.Metadata = &structpb.Struct{Fields: make(map[string]*structpb.Value)}
		}
		node.Metadata.Fields[key] = structpb.NewStringValue(value)
	}
	return err
}
