// Package follow finds the resources that an Envoy gets from its files. It begins at the
// bootstrap, takes the static resources, reads every file that a config source of the bootstrap
// names by its path, then the files that the resources in these name, and so on, as the Envoy
// would. It returns them as a Snapshot, with findings about the files and subscriptions
// themselves. Package validate judges the resources.
//
//	result, err := follow.Bootstrap(ctx, "envoy.yaml", follow.Options{Root: "/etc/envoy"})
//
// The package does not know what an Envoy gets over the network: it reports no name that may come
// from there.
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
	"xdspub/source/load"
	"xdspub/xds"
)

// Options for Bootstrap.
type Options struct {
	// Envoy is the version that begins there; nil means the latest that is known.
	Envoy *envoyapi.Version
	// Root is the Envoy's working directory, where relative paths begin; empty is
	// the program's own.
	Root string
	// Disable holds the codes of findings that are left out.
	Disable []string
	// StubSecrets says that certificates, keys and other secrets may be missing on this machine.
	StubSecrets bool
	// Draft is the text of a bootstrap that is still to be written: it is read instead of a file.
	// The files that it leads to may be missing yet, and what Envoy subscribes to is not read.
	Draft *load.Input
}

// Result holds the resources that an Envoy gets from its files, and the findings about these.
type Result struct {
	// Bootstrap is what the bootstrap says beside its static resources; nil where
	// the bootstrap can't be decoded.
	Bootstrap *xds.Resource
	// BootstrapFacts are those of the bootstrap.
	BootstrapFacts xds.BootstrapFacts
	// Snapshot is the resources of the bootstrap and of all files.
	Snapshot *xds.Snapshot
	// Incomplete are the types of which the Envoy may have resources beside these: some file could not
	// be read, or they come over the network.
	Incomplete []*xds.Type
	// Diagnostics are sorted.
	Diagnostics diag.List
	// Files are the files that were read, the bootstrap first.
	Files []string
	// Data are the files that went into resources, such as certificates, sorted.
	Data []string

	sources map[string]*load.Result
}

// Line returns the source line at a position, without its line break. It gives none
// that may hold a secret.
func (r *Result) Line(p diag.Position) (string, bool) {
	if source, ok := r.sources[p.File]; ok {
		return source.Line(p)
	}
	return "", false
}

// IgnoreComments returns those of all files that were read, in the order of their paths.
func (r *Result) IgnoreComments() (list []load.IgnoreComment) {
	for _, path := range slices.Sorted(maps.Keys(r.sources)) {
		list = append(list, r.sources[path].IgnoreComments()...)
	}
	return list
}

// Bootstrap follows the bootstrap in a file. Diagnostics says what is wrong in the bootstrap, and
// which of the files that it leads to are wrong or can't be read. An error means that the
// bootstrap itself can't be read, that the disk has failed, or that ctx has ended.
func Bootstrap(ctx context.Context, path string, o Options) (*Result, error) {
	return bootstrap(ctx, path, o, load.MaxTotal)
}

// bootstrap is Bootstrap for files of at most that many bytes together.
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

// read reads the bootstrap.
func read(path string, o Options) (*bootstrapv3.Bootstrap, *load.Result, error) {
	if o.Draft == nil {
		return load.BootstrapResources(path, o.Envoy)
	}
	draft := *o.Draft
	draft.Envoy = o.Envoy
	b, loaded := load.ParseBootstrap(draft)
	return b, loaded, nil
}

// follower is what is known while files are followed.
type follower struct {
	options   Options
	envoy     *envoyapi.Version
	followed  *xds.Search
	result    *Result
	found     diag.Bounded
	resources []*xds.Resource
	// left is how many bytes may still be read.
	left int64
	// hasADS reports whether the bootstrap says where ads leads.
	hasADS bool
	// files are those that were met, by their paths as they were written; order is
	// in which they were met, unread what is left to read of them.
	files  map[string]*file
	order  []*file
	unread []*file
	// scopes are the places that name a route configuration for a scope.
	scopes []subscriber
	// asks tells that something is subscribed to, by any kind of source.
	asks bool
	// asked are the names of static secrets that are asked for, stored those that name
	// files: Envoy opens them for who asks.
	asked  map[string]bool
	stored []*xds.Resource
	// failure is the first error of a disk that fails: nothing can be said of the file then.
	failure error
	// certificates counts the secrets that Envoy watches certificate files for.
	certificates int
}

// file is one that an Envoy subscribes to.
type file struct {
	path        string
	subscribers []subscriber
	// held is what it holds; nil where it could not be read.
	held []*xds.Resource
	// crowded tells that it held more where Envoy takes one, which is reported.
	crowded bool
	read    bool
}

// subscriber is a place that asks for a file.
type subscriber struct {
	*xds.Resource
	xds.Subscription
	// watched is the directory whose renames have the file read again, where that
	// is not the file's own.
	watched string
	// scopes says that the route configurations of all scopes are asked for.
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

// warning returns a code as the warning that it is if Envoy takes the configuration.
func warning(code diag.Code) diag.Code {
	return diag.Code{Name: code.Name, Severity: diag.Warning}
}

// add takes findings up, but those that are disabled.
func (f *follower) add(list ...diag.Diagnostic) {
	for _, d := range list {
		if missing := d.Code == codeMissingPath.Name && f.options.Draft != nil; !missing && !slices.Contains(f.options.Disable, d.Code) {
			f.found.Add(d)
		}
	}
}

// bootstrap takes what a bootstrap itself subscribes to.
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

// collection takes the locator of a collection, empty for none. It does not follow what the
// collection has.
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

// runtimeDirectory checks that Envoy can watch the link of a runtime layer on the disk. The
// link itself may be missing: the layer is empty then.
func (f *follower) runtimeDirectory(at xds.Path, link string) {
	r := f.result.Bootstrap
	if !strings.Contains(link, "/") {
		f.report(r, problem{code: codeUnsupportedFile, path: at, message: fmt.Sprintf("the path %q has no directory: Envoy does not start", link), help: fmt.Sprintf("write ./%s", link)})
		return
	}
	if _, err := f.stat(f.resolve(filepath.Dir(link))); err != nil {
		f.report(r, problem{code: codeMissingPath, path: at, message: fmt.Sprintf("%s to watch %s in: %v: Envoy does not start", filepath.Dir(link), filepath.Base(link), fspath.Reason(err)), help: f.rootHelp(link)})
	}
}

// node checks that the Envoy says who it is where it asks for anything.
func (f *follower) node(b *bootstrapv3.Bootstrap) {
	id, cluster := b.GetNode().GetId(), b.GetNode().GetCluster()
	if !f.asks || id != "" && cluster != "" {
		return
	}
	field, flag := xds.Path("node.id"), "--service-node"
	if id != "" {
		field, flag = "node.cluster", "--service-cluster"
	}
	f.report(f.result.Bootstrap, problem{code: codeNodeMissing, path: "node", message: fmt.Sprintf("%s is not set: Envoy does not start, unless %s sets it", field, flag), help: "set node.id and node.cluster"})
}

// take takes a resource over, and follows what it subscribes to.
func (f *follower) take(r *xds.Resource) {
	f.resources = append(f.resources, r)
	f.look(r)
}

// followed finds the messages that look looks at.
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

// look notes what a resource subscribes to, and the files that it names.
func (f *follower) look(r *xds.Resource) {
	namesData := false
	f.followed.Walk(r.Message(), func(n *xds.Node) {
		if n.InMetadata() {
			return
		}
		f.named(r, n)
		if s, ok := n.Subscription(); ok && s.Source == nil && s.Target == xds.Endpoints {
			f.report(r, problem{code: codeNoConfigSource, path: s.NamePath, message: fmt.Sprintf("%s has type EDS and no eds_config: %s", r.Key, r.Refusal()), help: "set eds_cluster_config.eds_config, the source of its endpoints"})
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
				f.opens(r, n.Path(), m) // Envoy wants it to be there
			}
		case *corev3.DataSource:
			namesData = namesData || m.GetFilename() != ""
		default:
			_, ok := load.DescriptorsOf(m)
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
		f.stored = append(f.stored, r) // who asks for it may come later
	case namesData:
		f.data(r, false)
	}
}

// ofSubscription reports whether a config source belongs to a subscription that is
// followed. It stands in the message that subscribes, or one below it.
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

// subscribe notes one subscription, and its file if that was not met.
func (f *follower) subscribe(s subscriber) {
	f.asks = true
	path := xds.PathOf(s.Source)
	switch {
	case path == "":
		f.elsewhere(s)
		return
	case s.Target.Asked == xds.InGroups:
		return // none of its ways is a file: vhds-config-source, leds-endpoints
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
	// Two connection managers with one source and name share a subscription.
	same := func(other subscriber) bool {
		return other.Target == s.Target && other.Name == s.Name && other.watched == s.watched
	}
	if !slices.ContainsFunc(to.subscribers, same) {
		to.subscribers = append(to.subscribers, s)
	}
}

// incomplete notes that the Envoy may have resources of a type that the Snapshot lacks.
func (f *follower) incomplete(t *xds.Type) {
	if !slices.Contains(f.result.Incomplete, t) {
		f.result.Incomplete = append(f.result.Incomplete, t)
	}
}

// elsewhere takes a subscription that no file answers.
func (f *follower) elsewhere(s subscriber) {
	f.incomplete(s.Target)
	switch s.Source.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Path: // an empty one, which path_config_source may not be
		f.report(s.Resource, problem{code: codeMissingPath, path: s.SourcePath.Field("path"), message: fmt.Sprintf("the path is empty: %s", s.Resource.Refusal()), help: "name a file with path_config_source"})
	case *corev3.ConfigSource_Ads:
		f.ads(s)
	}
}

// ads takes a subscription that the bootstrap's ADS answers.
func (f *follower) ads(s subscriber) {
	if f.hasADS {
		return
	}
	f.report(s.Resource, problem{code: codeNoADS, path: s.SourcePath, message: "the config source is ads, but the bootstrap has no ads_config: " + s.Resource.Refusal(), help: "set dynamic_resources.ads_config in the bootstrap, or name a file with path_config_source"})
}

// stat asks for a file or a folder.
func (f *follower) stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	f.noFailure(path, err)
	return info, err
}

// noFailure notes an error that means that the disk has failed.
func (f *follower) noFailure(path string, err error) {
	if f.failure == nil {
		f.failure = load.Failure(path, err)
	}
}

// resolve returns a path as this program has to open it.
func (f *follower) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.options.Root, path)
}
