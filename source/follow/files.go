package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/xds"
)

// read reads a file, and adds its resources for the subscriptions to it.
func (f *follower) read(to *file) {
	first := to.subscribers[0]
	if !f.opens(first.Resource, first.SourcePath, first.Source) {
		f.incomplete(first.Target)
		return
	}
	name := f.resolve(to.path)
	loaded, err := load.Subscribed(name, first.Target, f.options.Envoy, f.options.Overlay)
	if f.noFailure(name, err); err != nil {
		f.report(first.Resource, problem{
			code: codeMissingPath, path: sourcePath(first), message: fmt.Sprintf("%s can't be read: %v", to.path, fspath.Reason(err)),
		})
		f.incomplete(first.Target)
		return
	}
	to.read = true
	f.result.Files = append(f.result.Files, name)
	f.result.sources[name] = loaded
	f.left -= loaded.Bytes
	f.add(loaded.Diagnostics...)
	if loaded.Partial {
		f.incomplete(first.Target)
	}
	for _, r := range loaded.Resources() {
		if r.Type != first.Target {
			f.report(r, problem{
				code:    codeSubscriptionMismatch,
				message: fmt.Sprintf("a %s in a file of %ss: Envoy rejects the whole file", r.Type.Noun, first.Target.Noun),
				help:    "move it to a file of its own type",
				related: []diag.Related{asked(first)},
			})
			continue
		}
		r.DeliveredBy = to.path
		to.held = append(to.held, r)
	}
	if first.Target.Asked == xds.ByName {
		f.one(to, loaded)
	} else if len(loaded.Resources()) == 0 && !loaded.SaysNone && !loaded.Partial {
		d := diag.Diagnostic{
			Code: codeEmptySubscription.Name, Severity: diag.Warning, Position: diag.Position{File: name},
			Message: fmt.Sprintf("no %s: %s", first.Target.Noun, first.Target.WithoutAny()),
			Related: []diag.Related{asked(first)},
			Help:    "if you mean it, write resources: []",
		}
		f.add(d)
	}
	for _, r := range to.held {
		f.take(r)
	}
}

// one judges a file that must hold one resource, and drops all further resources from to.held.
func (f *follower) one(to *file, loaded *load.Result) {
	first := to.subscribers[0]
	switch {
	case loaded.Partial || len(loaded.Resources()) > len(to.held):
		// another finding reports the missing or foreign resources
	case len(to.held) == 0:
		d := diag.Diagnostic{
			Code: codeEmptySubscription.Name, Position: diag.Position{File: f.resolve(to.path)},
			Message: fmt.Sprintf("the file has no %s, but Envoy subscribes to one here: %s", first.Target.Noun, first.Target.WithoutAny()),
			Related: []diag.Related{asked(first)},
		}
		if first.Target.KeptWithout {
			d.Severity = diag.Warning
		}
		f.add(d)
	case len(to.held) > 1:
		f.report(to.held[1], problem{
			code:    codeSubscriptionMismatch,
			path:    xds.Path(first.Target.Name),
			message: fmt.Sprintf("the file holds %d %ss: Envoy accepts exactly one, and rejects the file", len(to.held), first.Target.Noun),
			help:    "give each its own file, and write that in its path_config_source",
			related: []diag.Related{asked(first)},
		})
	}
	if len(to.held) > 1 {
		to.held, to.crowded = to.held[:1], true
	}
}

// checkFiles reports findings that need all files.
func (f *follower) checkFiles() {
	for _, r := range f.stored {
		f.data(r, !f.asked[r.Name])
	}
	for _, to := range f.order {
		f.names(to)
	}
	f.directories()
	f.inotify()
}

// names compares the name of a file's one resource with the names in the subscriptions.
func (f *follower) names(to *file) {
	if !to.read || len(to.held) == 0 || to.crowded || to.subscribers[0].Target.Asked != xds.ByName {
		return
	}
	held := to.held[0]
	var wrong []subscriber
	for _, s := range to.subscribers {
		switch {
		case s.scopes:
			for _, scope := range f.scopes {
				if scope.Name != held.Name {
					f.report(scope.Resource, problem{
						code: codeSubscriptionMismatch,
						path: scope.NamePath,
						message: fmt.Sprintf("the route configuration of all scopes comes from %s, which holds %s: requests of this scope get 404",
							to.path, held.Key),
						help:    "a file holds one route configuration: use one scope, or write route_configuration inline",
						related: []diag.Related{{Position: held.At(xds.Path(held.Type.Name)).Position, Message: "the file has this one"}},
					})
				}
			}
		case s.Target == held.Type && s.Name != held.Name:
			wrong = append(wrong, s)
		}
	}
	switch {
	case len(wrong) == 0:
	case len(wrong) == len(to.subscribers):
		// No subscription fits the resource, so the resource most likely has a wrong name.
		f.report(held, problem{
			code:    codeSubscriptionMismatch,
			path:    xds.Path(held.Type.Name),
			message: fmt.Sprintf("%s, but Envoy subscribes to %q here: it rejects the file", held.Key, wrong[0].Name),
			help:    fmt.Sprintf("name it %q, or correct the name in the subscription", wrong[0].Name),
			related: []diag.Related{asked(wrong[0])},
		})
		f.resources = slices.DeleteFunc(f.resources, func(r *xds.Resource) bool { return r == held }) // rejected
	default:
		for _, s := range wrong {
			f.report(s.Resource, problem{
				code:    codeSubscriptionMismatch,
				path:    s.NamePath,
				message: fmt.Sprintf("%s holds %s, not %q", to.path, held.Key, s.Name),
				help:    "write another file here: a file holds one resource",
				related: []diag.Related{{Position: held.At(xds.Path(held.Type.Name)).Position, Message: "the file has this one"}},
			})
		}
	}
}

// asked points to a subscription.
func asked(s subscriber) diag.Related {
	return diag.Related{Position: s.Origin.Range(sourcePath(s)).Position, Message: "the subscription is here"}
}

// sourcePath returns the path of the field in which a subscriber names its file.
func sourcePath(s subscriber) xds.Path { return pathField(s.SourcePath, s.Source) }

// pathField returns the path of the field in which a config source names a file.
func pathField(at xds.Path, source *corev3.ConfigSource) xds.Path {
	if source.GetPathConfigSource() != nil {
		return at.Field("path_config_source").Field("path")
	}
	return at.Field("path")
}

// opens reports faults that prevent Envoy from subscribing to a file. at is the path of the config source.
func (f *follower) opens(r *xds.Resource, at xds.Path, source *corev3.ConfigSource) bool {
	path, watched := xds.PathOf(source), source.GetPathConfigSource().GetWatchedDirectory().GetPath()
	field := pathField(at, source)
	if watched == "" && !strings.Contains(path, "/") {
		f.report(r, problem{
			code: codeUnsupportedFile, path: field,
			message: fmt.Sprintf("the path %q has no directory: %s", path, r.Refusal()), help: fmt.Sprintf("write ./%s", path),
		})
		return false
	}
	info, err := f.stat(f.resolve(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.report(r, problem{
			code: codeMissingPath, path: field, message: fmt.Sprintf("there is no %s: %s", path, r.Refusal()),
			help: f.rootHelp(path) + "; if xdspub publishes the file, run xdspub render --out DIR first",
		})
		return false
	case err != nil:
		f.report(r, problem{code: codeMissingPath, path: field, message: fmt.Sprintf("%s can't be read: %v", path, fspath.Reason(err))})
		return false
	case !info.Mode().IsRegular():
		f.report(r, problem{code: codeUnsupportedFile, path: field, message: fmt.Sprintf("%s is not a file", path)})
		return false
	}
	if watched == "" {
		return true
	}
	field = at.Field("path_config_source").Field("watched_directory").Field("path")
	switch info, err := f.stat(f.resolve(watched)); {
	case err != nil:
		f.report(r, problem{
			code: codeMissingPath, path: field,
			message: fmt.Sprintf("there is no %s to watch: %s", watched, r.Refusal()), help: f.rootHelp(watched),
		})
	case !info.IsDir():
		f.report(r, problem{
			code: warning(codeUnsupportedFile), path: field,
			message: fmt.Sprintf("%s is not a directory: Envoy reads the file once and never sees a change", watched),
			help:    "write the directory in which the files are renamed",
		})
	}
	return true
}

// rootHelp returns the help for a missing path.
func (f *follower) rootHelp(path string) string {
	if filepath.IsAbs(path) {
		return "put the file there, or correct the path; if only Envoy's machine has the file, disable the rule missing-path"
	}
	looked := f.resolve(path)
	if abs, err := filepath.Abs(looked); err == nil {
		looked = abs
	}
	return fmt.Sprintf("xdspub looked for %s; if Envoy starts in another directory, pass --root DIR", looked)
}

// data inlines the files of a resource's data sources, as Envoy does, so that rules can judge certificates by
// their contents. idle marks a resource without subscriptions: Envoy opens no file for it, so missing files
// are warnings.
func (f *follower) data(r *xds.Resource, idle bool) {
	r.Edit(func(n *xds.Node) bool {
		if set, ok := decode.DescriptorsOf(n.Message); ok && !n.InMetadata() && f.left >= 0 {
			return f.descriptors(r, n, set)
		}
		m, ok := n.Message.(*corev3.DataSource)
		if !ok || m.GetFilename() == "" || n.InMetadata() || f.left < 0 {
			return false
		}
		path := f.resolve(m.GetFilename())
		data, err := decode.ReadData(path)
		f.noFailure(path, err)
		if f.stubs(n) && errors.Is(err, decode.ErrMissing) {
			return false
		}
		if err != nil {
			code := codeMissingPath
			if idle || f.envoy.DoesWithoutFile(n.Field()) {
				code = warning(code)
			}
			f.report(r, problem{
				code: code, path: n.Path().Field("filename"),
				message: fmt.Sprintf("%s: %v", m.GetFilename(), err), help: f.rootHelp(m.GetFilename()),
			})
			return false
		}
		if f.left -= int64(len(data)); f.left < 0 {
			return false
		}
		f.result.Data = append(f.result.Data, path)
		decode.SetData(m, n.Field(), data)
		return true
	})
}

// descriptors inlines the descriptor set of a filter. named has already reported a missing file.
func (f *follower) descriptors(r *xds.Resource, n *xds.Node, set decode.Descriptors) bool {
	path := f.resolve(set.Path)
	data, err := decode.ReadDescriptors(path)
	if f.noFailure(path, err); err != nil && !errors.Is(err, decode.ErrMissing) {
		f.report(r, problem{code: codeMissingPath, path: n.Path().Field(set.Field), message: fmt.Sprintf("%s: %v", set.Path, err)})
	}
	if f.left -= int64(len(data)); err != nil || f.left < 0 {
		return false
	}
	f.result.Data = append(f.result.Data, path)
	set.Inline(data)
	return true
}

// stubs reports whether the files of a node may be missing on this machine.
func (f *follower) stubs(n *xds.Node) bool { return f.options.StubSecrets && n.OfSecret() }

// named checks that the files in a message's fields exist.
func (f *follower) named(r *xds.Resource, n *xds.Node) {
	m := n.Message.ProtoReflect()
	for _, name := range f.envoy.FileFields(n.Name()) {
		fd := m.Descriptor().Fields().ByName(name)
		path := m.Get(fd).String()
		if path == "" || !f.isWatched(r, n) || opensNothing(n) {
			continue
		}
		if _, err := f.stat(f.resolve(path)); err != nil && !(f.stubs(n) && errors.Is(err, fs.ErrNotExist)) {
			f.report(r, problem{
				code: codeMissingPath, path: n.Path().Field(string(name)),
				message: fmt.Sprintf("%s: %v: %s", path, fspath.Reason(err), r.Refusal()), help: f.rootHelp(path),
			})
		}
	}
}

// opensNothing reports whether the node is a transcoder without services: Envoy never opens its descriptors.
func opensNothing(n *xds.Node) bool {
	transcoder, ok := n.Message.(*transcoderv3.GrpcJsonTranscoder)
	return ok && len(transcoder.GetServices()) == 0
}

// isWatched reports whether named must check a node. isWatched is false for a WatchedDirectory that Envoy
// doesn't watch, or that another check judges.
func (f *follower) isWatched(r *xds.Resource, n *xds.Node) bool {
	if n.Name() != "envoy.config.core.v3.WatchedDirectory" || n.Parent == nil {
		return true
	}
	switch owner := n.Parent.Message.(type) {
	case *corev3.PathConfigSource:
		return false // opens checks this directory
	case *corev3.DataSource:
		_, certificate := xds.Enclosing[*tlsv3.TlsCertificate](n)
		_, validation := xds.Enclosing[*tlsv3.CertificateValidationContext](n)
		return owner.GetFilename() != "" && certificate == nil && validation == nil && !f.envoy.DoesWithoutFile(n.Parent.Field())
	case *tlsv3.TlsCertificate, *tlsv3.CertificateValidationContext:
		return r.Type == xds.Secret && r.DeliveredBy != xds.StaticResources
	}
	return true
}
