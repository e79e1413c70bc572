package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	eventsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_check/event_sinks/file/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/xds"
)

// acts maps packages of extensions that act as soon as Envoy reads their configuration to a text about the action.
// Lua filters are frequent, so their configuration is judged without the code (still).
var acts = map[string]string{
	".dynamic_modules.":        "Envoy would run their code",
	".golang.":                 "Envoy would run their code",
	".lua.":                    "Envoy would run their code",
	".DynamicOtConfig":         "Envoy would run their code",
	".file_system_http_cache.": "Envoy would write files",
}

// unreadable is the reason for an omission of a resource whose content is partly unknown: it may contain code.
const unreadable = "they hold what is unknown to xdspub"

// standalone returns the message of a resource in a form that Envoy can judge alone: its subscriptions ask an
// absent server, and Envoy writes no file and runs no code. If no such form exists, why is the reason.
func (f *folded) standalone(r *xds.Resource) (m proto.Message, why string) {
	alone := r.With(proto.CloneOf(r.Message()))
	alone.Edit(func(n *xds.Node) (changed bool) {
		if w := f.outside(n); w != "" && why == "" {
			why = w
		}
		return f.cut(r.Type, n)
	})
	return alone.Message(), why
}

// outside returns the reason why Envoy can't judge a message on this machine, or "".
func (f *folded) outside(n *xds.Node) string {
	if n.Err != nil {
		return unreadable
	}
	for _, field := range f.version.FileFields(n.Name()) {
		m := n.Message.ProtoReflect()
		if why := f.named(m.Get(m.Descriptor().Fields().ByName(field)).String()); why != "" {
			return why
		}
	}
	switch m := n.Message.(type) {
	case *structpb.Struct:
		if n.Parent != nil && n.Parent.Name() == "google.protobuf.Any" { // an old Envoy may find the type by the extension's name
			return unreadable
		}
	case *luav3.Lua, *luav3.LuaPerRoute:
		return ""
	case *corev3.DataSource:
		if name := m.GetEnvironmentVariable(); name != "" && os.Getenv(name) == "" {
			return fmt.Sprintf("the environment variable %q is not set here", name)
		}
		if why := f.named(m.GetFilename()); why != "" {
			return why
		}
	}
	name := string(n.Name())
	for part, does := range acts {
		if strings.Contains(name, part) {
			return does
		}
	}
	return ""
}

// named records a file or directory that a resource names. It returns the reason if Envoy can't read the path on
// this machine. A relative path can't be read, because it begins at the directory in which the other Envoy starts.
func (f *folded) named(name string) string {
	if name == "" {
		return ""
	}
	f.files = append(f.files, name)
	info, err := os.Stat(name)
	if err != nil || !filepath.IsAbs(name) || !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Sprintf("the file %q is not here", name)
	}
	return ""
}

// cut changes a message so that Envoy asks nobody, writes no file and runs no code.
func (f *folded) cut(of *xds.Type, n *xds.Node) (changed bool) {
	if sub, ok := n.Subscription(); ok && sub.Source == nil && f.candidate.Snapshot.Serves(sub) {
		source := &corev3.ConfigSource{}
		toNobody(of, source)
		sub.Set(source)
		changed = true
	}
	switch m := n.Message.(type) {
	case *corev3.ConfigSource:
		if f.candidate.Bootstrap != nil && m.GetApiConfigSource() != nil {
			return changed // the source names a cluster that must exist
		}
		toNobody(of, m)
		return true
	case *corev3.ExtensionConfigSource:
		if sub, ok := n.Subscription(); ok {
			f.filters[sub.Name] = holderOf(n)
		}
	}
	return still(n) || changed
}

// still changes a message so that Envoy writes no file, runs no code and watches no directory when it reads the
// message.
func still(n *xds.Node) (changed bool) {
	switch m := n.Message.(type) {
	case *filev3.FileAccessLog:
		m.Path = os.DevNull
		return true
	case *eventsv3.HealthCheckEventFileSink:
		m.EventLogPath = os.DevNull
		return true
	case *luav3.Lua:
		cutLua(m)
		return true
	case *luav3.LuaPerRoute:
		if m.GetSourceCode() != nil {
			m.Override = &luav3.LuaPerRoute_SourceCode{SourceCode: noCode()}
		}
		m.PackagePaths, m.PackageCpaths = nil, nil
		return true
	case *tlsv3.TlsCertificate:
		m.WatchedDirectory = nil
		return true
	case *tlsv3.CertificateValidationContext:
		m.WatchedDirectory = nil
		return true
	}
	return false
}

// toNobody changes a config source to that of the absent management server: ADS or, in a cluster, a server of its
// own. Envoy creates the clusters of a bootstrap before its ADS connection, and Envoy 1.40.0 crashes if a cluster
// gets a secret by ADS.
func toNobody(of *xds.Type, c *corev3.ConfigSource) {
	c.ResourceApiVersion, c.Authorities = corev3.ApiVersion_V3, nil
	c.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
	if of == xds.Cluster {
		c.ConfigSourceSpecifier = &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: nobody()}
	}
}

// cutLua removes the code from a Lua filter. A rule of package validate judges the syntax of the code without
// running it.
func cutLua(m *luav3.Lua) {
	if m.GetInlineCode() != "" {
		m.InlineCode = "--"
	}
	if m.DefaultSourceCode != nil {
		m.DefaultSourceCode = noCode()
	}
	for name := range m.GetSourceCodes() {
		m.SourceCodes[name] = noCode()
	}
	m.PackagePaths, m.PackageCpaths = nil, nil
}

func noCode() *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "--"}}
}

// holderOf returns the kind of filter whose configuration comes from the ExtensionConfigSource at n.
func holderOf(n *xds.Node) holder {
	switch n.Parent.Message.(type) {
	case *hcmv3.HttpFilter:
		return httpFilter
	case *listenerv3.ListenerFilter:
		return listenerFilter
	}
	return unheld
}
