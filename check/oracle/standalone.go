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

// acts maps packages of extensions that act as soon as Envoy reads their configuration to the action. Lua
// filters are frequent, so their configuration is judged without the code.
var acts = map[string]string{
	".dynamic_modules.":        "Envoy would run their code",
	".golang.":                 "Envoy would run their code",
	".lua.":                    "Envoy would run their code",
	".DynamicOtConfig":         "Envoy would run their code",
	".file_system_http_cache.": "Envoy would write files",
}

// unreadable is the reason not to judge a resource that may hold hidden code.
const unreadable = "they hold what is unknown to xdspub"

// standalone returns the message of a resource in a form that Envoy judges in isolation: every subscription
// asks ADS, no file is written, and no code runs. If that is impossible, why is the reason.
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

// outside returns why a message can't be judged here.
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
		if n.Parent != nil && n.Parent.Name() == "google.protobuf.Any" { // old Envoys find a type for it by a name
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

// named records a file or directory that a resource names, and returns the reason if Envoy can't read the path
// here. A relative name is relative to the directory of the Envoy that gets the resource.
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

// cut takes what leads outside of a message out of it.
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

// still removes from a message the actions that Envoy takes on reading it: writing files, running code,
// watching directories.
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

// toNobody makes a config source one of the management server that is not there: by ADS, but in
// clusters. Envoy reads those of a bootstrap before it has ADS, and 1.40.0 dies of a secret by ADS.
func toNobody(of *xds.Type, c *corev3.ConfigSource) {
	c.ResourceApiVersion, c.Authorities = corev3.ApiVersion_V3, nil
	c.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
	if of == xds.Cluster {
		c.ConfigSourceSpecifier = &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: nobody()}
	}
}

// cutLua takes the code out of a Lua filter. A rule of package validate has judged it, and runs none.
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

// holderOf returns what a message asks for an extension config as.
func holderOf(n *xds.Node) holder {
	switch n.Parent.Message.(type) {
	case *hcmv3.HttpFilter:
		return httpFilter
	case *listenerv3.ListenerFilter:
		return listenerFilter
	}
	return unheld
}
