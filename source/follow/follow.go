// Package follow finds the resources that an Envoy gets from its files. Package follow starts at the
// bootstrap, takes the static resources, and reads every file that a config source names by path. It then
// reads the files that these resources name, and so on, as the Envoy would. The result is a Snapshot, with
// findings about the files and subscriptions themselves. Package validate judges the resources.
//
//	result, err := follow.Bootstrap(ctx, "envoy.yaml", follow.Options{Root: "/etc/envoy"})
//
// Package follow doesn't know the resources that an Envoy gets over the network, and so doesn't report names
// that may come from there.
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/internal/fspath"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/xds"
)

// Options configure Bootstrap.
type Options struct {
	// Envoy is the version of the Envoy that starts; nil means the latest known version.
	Envoy *envoyapi.Version
	// Root is the Envoy's working directory, the base of relative paths; empty means the program's own
	// working directory.
	Root string
	// Disable lists the codes of disabled findings.
	Disable []string
	// StubSecrets means that certificates, keys and other secrets may be missing on this machine.
	StubSecrets bool
	// Draft is the text of a bootstrap that is not written yet, used in place of a file. Files in the Draft
	// may be missing, and the files of its subscriptions are not read.
	Draft *load.Input
	// Overlay has texts that replace the bootstrap and the files of its subscriptions.
	Overlay load.Overlay
}

// Result holds the resources that an Envoy gets from its files, with the findings.
type Result struct {
	// Bootstrap is the bootstrap without its static resources; nil if the bootstrap can't be decoded.
	Bootstrap *xds.Resource
	// BootstrapFacts are the facts about the bootstrap.
	BootstrapFacts xds.BootstrapFacts
	// Snapshot holds the resources of the bootstrap and of all files.
	Snapshot *xds.Snapshot
	// Incomplete lists types with possibly more resources: a file could not be read, or the resources come
	// over the network.
	Incomplete []*xds.Type
	// Diagnostics are the findings, sorted.
	Diagnostics diag.List
	// Files lists the files that Bootstrap read, the bootstrap first.
	Files []string
	// Data lists the files inlined into resources, such as certificates, sorted.
	Data []string

	sources map[string]*load.Result
}

// Line returns the source line at a position, without its line break. Line returns false for a line that may
// hold a secret.
func (r *Result) Line(p diag.Position) (string, bool) {
	if source, ok := r.sources[p.File]; ok {
		return source.Line(p)
	}
	return "", false
}

// IgnoreComments returns the ignore comments of all files in Files, sorted by path.
func (r *Result) IgnoreComments() (list []decode.IgnoreComment) {
	for _, path := range slices.Sorted(maps.Keys(r.sources)) {
		list = append(list, r.sources[path].IgnoreComments()...)
	}
	return list
}

// Bootstrap follows the bootstrap in a file. Result.Diagnostics reports faults in the bootstrap and in the
// files that it leads to, including unreadable files. An error means that the bootstrap itself can't be read,
// that the disk has failed, or that ctx has ended.
func Bootstrap(ctx context.Context, path string, o Options) (*Result, error) {
	return bootstrap(ctx, path, o, load.MaxTotal)
}

// bootstrap is Bootstrap with a limit for the total bytes of the files.
func bootstrap(ctx context.Context, path string, o Options, most int64) (*Result, error) {
	b, loaded, err := read(path, o)
	if err != nil {
		return nil, err
	}
	v := cmp.Or(o.Envoy, envoyapi.Latest)
	f := follower{
		options:  o,
		envoy:    v,
		followed: followed(v),
		result:   &Result{Files: []string{path}, sources: map[string]*load.Result{path: loaded}, Diagnostics: loaded.Diagnostics},
		found:    diag.NewBounded(load.MaxTreeFindings),
		files:    make(map[string]*file),
		asked:    make(map[string]bool),
		left:     most - loaded.Bytes,
	}
	if b == nil {
		f.result.Snapshot, f.result.Incomplete = xds.NewFromBootstrap(nil), xds.Types
		return f.result, nil
	}
	f.add(loaded.Diagnostics...)
	f.result.BootstrapFacts, f.result.Bootstrap = xds.BootstrapFactsOf(b), loaded.Resources()[0]
	f.bootstrap(b)
	for _, r := range loaded.Resources()[1:] {
		r.DeliveredBy = xds.StaticResources
		f.take(r)
	}
	for len(f.unread) > 0 && f.left >= 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next := f.unread[0]
		f.unread = f.unread[1:]
		f.read(next)
	}
	f.node(b)
	f.checkFiles()
	if f.failure != nil {
		return nil, f.failure
	}
	if f.left < 0 {
		return nil, fmt.Errorf("follow %s: the bootstrap and the files that Envoy reads by it have more than %d bytes together", path, most)
	}
	f.result.Snapshot = xds.NewFromBootstrap(f.resources)
	f.result.Diagnostics = f.found.List(diag.Position{File: path}, "in the bootstrap and the files that it leads to").Sort()
	slices.Sort(f.result.Data)
	f.result.Data = slices.Compact(f.result.Data)
	return f.result, nil
}

// read reads the bootstrap or the Draft.
func read(path string, o Options) (*bootstrapv3.Bootstrap, *load.Result, error) {
	if o.Draft == nil {
		return load.BootstrapResources(path, o.Envoy, o.Overlay)
	}
	draft := *o.Draft
	draft.Envoy = o.Envoy
	b, loaded := load.ParseBootstrap(draft)
	return b, loaded, nil
}

// follower is the state of Bootstrap.
type follower struct {
	options   Options
	envoy     *envoyapi.Version
	followed  *xds.Search
	result    *Result
	found     diag.Bounded
	resources []*xds.Resource
	// left is the number of bytes that may still be read; negative after the limit.
	left int64
	// hasADS means that the bootstrap has an ads_config.
	hasADS bool
	// files holds the subscribed files by path as written. order lists them in the order of discovery, unread
	// lists the files to read.
	files  map[string]*file
	order  []*file
	unread []*file
	// scopes are the places that name a route configuration for a scope.
	scopes []subscriber
	// asks means that Envoy has subscriptions, to files or over the network.
	asks bool
	// asked holds the names of static secrets in use. stored lists static secrets with files: Envoy opens
	// these files only for secrets in use.
	asked  map[string]bool
	stored []*xds.Resource
	// failure is the first error of a failing disk.
	failure error
	// certificates is the number of secrets whose certificate files Envoy watches.
	certificates int
}

// file is a file that an Envoy subscribes to.
type file struct {
	path        string
	subscribers []subscriber
	// held are the resources in the file; nil if the file could not be read.
	held []*xds.Resource
	// crowded means that the file held several resources instead of one; a finding reports this.
	crowded bool
	read    bool
}

// subscriber is a place that subscribes to a file.
type subscriber struct {
	*xds.Resource
	xds.Subscription
	// watched is the watched_directory, whose renames make Envoy read the file again; empty means the file's
	// own directory.
	watched string
	// scopes means that the subscription is for the route configurations of all scopes.
	scopes bool
}

// problem is a finding about a resource.
type problem struct {
	code          diag.Code
	path          xds.Path
	message, help string
	related       []diag.Related
}

func (f *follower) report(r *xds.Resource, of problem) {
	d := r.Diagnostic(of.code.Name, of.path, of.message)
	d.Severity, d.Help, d.Related = of.code.Severity, of.help, of.related
	f.add(d)
}

// warning returns a code as a warning, for configurations that Envoy accepts.
func warning(code diag.Code) diag.Code {
	return diag.Code{Name: code.Name, Severity: diag.Warning}
}

// add adds findings, except disabled ones and missing files of a Draft.
func (f *follower) add(list ...diag.Diagnostic) {
	for _, d := range list {
		if missing := d.Code == codeMissingPath.Name && f.options.Draft != nil; !missing && !slices.Contains(f.options.Disable, d.Code) {
			f.found.Add(d)
		}
	}
}

// bootstrap adds the subscriptions of the bootstrap itself.
func (f *follower) bootstrap(b *bootstrapv3.Bootstrap) {
	r := f.result.Bootstrap
	dynamic := b.GetDynamicResources()
	f.hasADS = dynamic.GetAdsConfig() != nil
	for _, s := range []xds.Subscription{
		{Target: xds.Cluster, Source: dynamic.GetCdsConfig(), SourcePath: "dynamic_resources.cds_config"},
		{Target: xds.Listener, Source: dynamic.GetLdsConfig(), SourcePath: "dynamic_resources.lds_config"},
	} {
		if s.Source != nil {
			f.subscribe(subscriber{Resource: r, Subscription: s})
		}
	}
	f.collection(xds.Cluster, "dynamic_resources.cds_resources_locator", dynamic.GetCdsResourcesLocator())
	f.collection(xds.Listener, "dynamic_resources.lds_resources_locator", dynamic.GetLdsResourcesLocator())
	for i, layer := range b.GetLayeredRuntime().GetLayers() {
		if rtds := layer.GetRtdsLayer(); rtds.GetRtdsConfig() != nil {
			at := xds.Path("layered_runtime.layers").Index(i).Field("rtds_layer")
			f.subscribe(subscriber{Resource: r, Subscription: xds.Subscription{
				Target: xds.Runtime, Name: rtds.GetName(), NamePath: at.Field("name"), Source: rtds.GetRtdsConfig(), SourcePath: at.Field("rtds_config"),
			}})
		}
	}
	for i, layer := range b.GetLayeredRuntime().GetLayers() {
		if disk := layer.GetDiskLayer(); disk != nil {
			f.runtimeDirectory(xds.Path("layered_runtime.layers").Index(i).Field("disk_layer.symlink_root"), disk.GetSymlinkRoot())
		}
	}
	if dynamic.GetAdsConfig() != nil || b.GetDefaultConfigSource() != nil || len(b.GetConfigSources()) > 0 {
		f.asks = true
	}
	f.look(r)
}

// collection handles the locator of a collection; empty for none. The resources of a collection are not
// followed.
func (f *follower) collection(t *xds.Type, at xds.Path, locator string) {
	if locator == "" {
		return
	}
	f.incomplete(t)
	u, err := url.Parse(locator)
	if err != nil || u.Scheme != "file" {
		return
	}
	if _, err := f.stat(f.resolve(u.Path)); errors.Is(err, fs.ErrNotExist) {
		r := f.result.Bootstrap
		f.report(r, problem{code: codeMissingPath, path: at, message: fmt.Sprintf("there is no %s: %s", u.Path, r.Refusal())})
	}
}

// runtimeDirectory checks that Envoy can watch the symlink_root of a disk layer. The link itself may be
// missing; the layer is then empty.
func (f *follower) runtimeDirectory(at xds.Path, link string) {
	r := f.result.Bootstrap
	if !strings.Contains(link, "/") {
		f.report(r, problem{
			code: codeUnsupportedFile, path: at,
			message: fmt.Sprintf("the path %q has no directory: Envoy does not start", link), help: fmt.Sprintf("write ./%s", link),
		})
		return
	}
	if _, err := f.stat(f.resolve(filepath.Dir(link))); err != nil {
		message := fmt.Sprintf("%s to watch %s in: %v: Envoy does not start", filepath.Dir(link), filepath.Base(link), fspath.Reason(err))
		f.report(r, problem{code: codeMissingPath, path: at, message: message, help: f.rootHelp(link)})
	}
}

// node checks that a bootstrap with subscriptions sets node.id and node.cluster.
func (f *follower) node(b *bootstrapv3.Bootstrap) {
	id, cluster := b.GetNode().GetId(), b.GetNode().GetCluster()
	if !f.asks || id != "" && cluster != "" {
		return
	}
	field, flag := xds.Path("node.id"), "--service-node"
	if id != "" {
		field, flag = "node.cluster", "--service-cluster"
	}
	f.report(f.result.Bootstrap, problem{
		code: codeNodeMissing, path: "node", help: "set node.id and node.cluster",
		message: fmt.Sprintf("%s is not set: Envoy does not start, unless %s sets it", field, flag),
	})
}

// take adds a resource, and follows its subscriptions.
func (f *follower) take(r *xds.Resource) {
	f.resources = append(f.resources, r)
	f.look(r)
}

// followed returns a search for the messages that look handles.
func followed(v *envoyapi.Version) *xds.Search {
	return xds.NewSearch(slices.Concat(
		v.NamingFiles(),
		xds.Subscribing,
		[]protoreflect.FullName{
			"envoy.config.core.v3.ConfigSource",
			"envoy.config.core.v3.DataSource",
			"envoy.config.route.v3.ScopedRouteConfiguration",
			"envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig",
			"envoy.extensions.transport_sockets.tls.v3.TlsCertificate",
		},
	)...)
}

// look records the subscriptions of a resource, and checks its files.
func (f *follower) look(r *xds.Resource) {
	namesData := false
	f.followed.Walk(r.Message(), func(n *xds.Node) {
		if n.InMetadata() {
			return
		}
		f.named(r, n)
		if s, ok := n.Subscription(); ok && s.Source == nil && s.Target == xds.Endpoints {
			f.report(r, problem{
				code: codeNoConfigSource, path: s.NamePath, message: fmt.Sprintf("%s has type EDS and no eds_config: %s", r.Key, r.Refusal()),
				help: "set eds_cluster_config.eds_config, the source of its endpoints",
			})
		} else if ok && s.Source != nil {
			_, scopes := n.Message.(*hcmv3.ScopedRoutes)
			f.subscribe(subscriber{Resource: r, Subscription: s, scopes: scopes && s.Target == xds.RouteConfiguration})
		}
		switch m := n.Message.(type) {
		case *routev3.ScopedRouteConfiguration:
			if m.GetRouteConfigurationName() != "" {
				f.scopes = append(f.scopes, subscriber{Resource: r, Subscription: xds.Subscription{
					Target: xds.RouteConfiguration, Name: m.GetRouteConfigurationName(), NamePath: n.Path().Field("route_configuration_name"),
				}})
			}
		case *corev3.ConfigSource:
			if xds.PathOf(m) != "" && !ofSubscription(n, m) {
				f.opens(r, n.Path(), m) // Envoy needs the file
			}
		case *corev3.DataSource:
			namesData = namesData || m.GetFilename() != ""
		default:
			_, ok := decode.DescriptorsOf(m)
			namesData = namesData || ok
		case *tlsv3.SdsSecretConfig:
			if m.GetSdsConfig() == nil {
				f.asked[m.GetName()] = true
			}
		case *tlsv3.TlsCertificate:
			if m.GetCertificateChain().GetFilename() != "" {
				f.certificates++
			}
		}
	})
	switch {
	case namesData && r.Type == xds.Secret && r.DeliveredBy == xds.StaticResources:
		f.stored = append(f.stored, r) // a later resource may use the secret
	case namesData:
		f.data(r, false)
	}
}

// ofSubscription reports whether a config source belongs to a followed subscription. The source is in the
// subscribing message, or one level below.
func ofSubscription(n *xds.Node, source *corev3.ConfigSource) bool {
	switch n.Field() {
	case "envoy.config.bootstrap.v3.Bootstrap.DynamicResources.cds_config",
		"envoy.config.bootstrap.v3.Bootstrap.DynamicResources.lds_config",
		"envoy.config.bootstrap.v3.RuntimeLayer.RtdsLayer.rtds_config":
		return true
	}
	for at, depth := n.Parent, 0; at != nil && depth < 2; at, depth = at.Parent, depth+1 {
		if s, ok := at.Subscription(); ok && s.Source == source {
			return true
		}
	}
	return false
}

// subscribe records a subscription, and queues its file on first use.
func (f *follower) subscribe(s subscriber) {
	f.asks = true
	path := xds.PathOf(s.Source)
	switch {
	case path == "":
		f.elsewhere(s)
		return
	case s.Target.Asked == xds.InGroups:
		return // not from a file: vhds-config-source, leds-endpoints
	case f.options.Draft != nil:
		f.incomplete(s.Target)
		return
	}
	to := f.files[path]
	if to == nil {
		to = &file{path: path}
		f.files[path] = to
		f.order = append(f.order, to)
		f.unread = append(f.unread, to)
	}
	s.watched = s.Source.GetPathConfigSource().GetWatchedDirectory().GetPath()
	// Two connection managers with the same source and name share a subscription.
	same := func(other subscriber) bool {
		return other.Target == s.Target && other.Name == s.Name && other.watched == s.watched
	}
	if !slices.ContainsFunc(to.subscribers, same) {
		to.subscribers = append(to.subscribers, s)
	}
}

// incomplete records that the Envoy may have more resources of a type than the Snapshot.
func (f *follower) incomplete(t *xds.Type) {
	if !slices.Contains(f.result.Incomplete, t) {
		f.result.Incomplete = append(f.result.Incomplete, t)
	}
}

// elsewhere handles a subscription without a file.
func (f *follower) elsewhere(s subscriber) {
	f.incomplete(s.Target)
	switch s.Source.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Path: // empty; path_config_source can't be empty
		f.report(s.Resource, problem{
			code: codeMissingPath, path: s.SourcePath.Field("path"), message: fmt.Sprintf("the path is empty: %s", s.Resource.Refusal()),
			help: "name a file with path_config_source",
		})
	case *corev3.ConfigSource_Ads:
		f.ads(s)
	}
}

// ads handles a subscription over ADS.
func (f *follower) ads(s subscriber) {
	if f.hasADS {
		return
	}
	f.report(s.Resource, problem{
		code: codeNoADS, path: s.SourcePath,
		message: "the config source is ads, but the bootstrap has no ads_config: " + s.Resource.Refusal(),
		help:    "set dynamic_resources.ads_config in the bootstrap, or name a file with path_config_source",
	})
}

// stat stats a file or folder, and records a failing disk.
func (f *follower) stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	f.noFailure(path, err)
	return info, err
}

// noFailure records an error of a failing disk; it ignores other errors.
func (f *follower) noFailure(path string, err error) {
	if f.failure == nil {
		f.failure = decode.Failure(path, err)
	}
}

// resolve returns a path with Options.Root as the base of a relative path.
func (f *follower) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.options.Root, path)
}
