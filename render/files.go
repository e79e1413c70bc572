package render

import (
	"path"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
	"xdspub/xds/bind"
)

// byPath is the medium of files that Envoy subscribes to by their paths.
type byPath struct {
	envoyPath         string
	format            *Format
	poll              time.Duration // 0 waits for events
	endpoints, routes bool          // go inline
}

// Source returns the path of the file. What else the author set on the config source stays.
func (f byPath) Source(sub xds.Subscription) *corev3.ConfigSource {
	source := &corev3.ConfigSource{}
	if sub.Source != nil {
		source = proto.CloneOf(sub.Source)
	}
	file := path.Join(f.envoyPath, f.format.Path(sub.Target, sub.Name))
	source.ResourceApiVersion = corev3.ApiVersion_V3
	by := &corev3.PathConfigSource{Path: file}
	if f.poll > 0 {
		by.PollInterval = durationpb.New(f.poll)
	} else {
		by.WatchedDirectory = &corev3.WatchedDirectory{Path: path.Dir(file)}
	}
	source.ConfigSourceSpecifier = &corev3.ConfigSource_PathConfigSource{PathConfigSource: by}
	return source
}

// Inline: Envoy takes VHDS and LEDS only over gRPC, and all scopes of one listener share one
// config source, which as a file holds just one route configuration.
func (f byPath) Inline() bind.Inline {
	return bind.Inline{Endpoints: f.endpoints, Routes: f.routes, ScopeRoutes: true, Groups: true}
}
