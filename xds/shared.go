package xds

import (
	"fmt"
	"strings"

	asyncfilesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/async_files/v3"
	dfpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	bandwidthsharev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/bandwidth_share/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/cache/file_system_http_cache/v3"
	cachev2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/cache_v2/file_system_http_cache/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Shared is something that belongs to the whole Envoy: everyone who names it shares
// it, and Envoy refuses who asks for other settings while anyone has it.
type Shared struct {
	// Noun is what it is, Name what tells it from others of that.
	Noun, Name string
}

func (s Shared) String() string { return fmt.Sprintf("%s %q", s.Noun, s.Name) }

// Sharing is a place that asks for something shared.
type Sharing struct {
	Shared
	// Path is where the name stands, or would stand.
	Path Path
	// Settings are equal where Envoy takes them for equal.
	Settings string
	// Tolerant says that Envoy takes the place with other settings too, without a
	// word, and that they are not in effect.
	Tolerant bool
}

// SharingMessages are the messages that ask for something shared.
var SharingMessages = []protoreflect.FullName{
	"envoy.extensions.common.async_files.v3.AsyncFileManagerConfig",
	"envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig",
	"envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare",
	"envoy.extensions.http.cache.file_system_http_cache.v3.FileSystemHttpCacheConfig",
	"envoy.extensions.http.cache_v2.file_system_http_cache.v3.FileSystemHttpCacheV2Config",
}

// Sharing is what the node's message asks for.
func (n *Node) Sharing() ([]Sharing, error) {
	switch m := n.Message.(type) {
	case *dfpv3.DnsCacheConfig:
		list, err := n.sharing(Shared{"DNS cache", m.GetName()}, "name", m)
		for i := range list {
			list[i].Tolerant = n.Field() == "envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.ConnPoolSettings.dns_cache_config"
		}
		return list, err
	case *asyncfilesv3.AsyncFileManagerConfig:
		return n.sharing(Shared{"file manager", m.GetId()}, "", m)
	case *cachev3.FileSystemHttpCacheConfig:
		c := proto.CloneOf(m)
		c.CachePath = strings.TrimSuffix(c.GetCachePath(), "/") // Envoy adds one where there is none
		return n.sharing(Shared{"HTTP cache", c.GetCachePath()}, "cache_path", c)
	case *cachev2v3.FileSystemHttpCacheV2Config:
		c := proto.CloneOf(m)
		c.CachePath = strings.TrimSuffix(c.GetCachePath(), "/")
		return n.sharing(Shared{"HTTP cache (v2)", c.GetCachePath()}, "cache_path", c)
	case *bandwidthsharev3.BandwidthShare:
		return n.buckets(m), nil
	}
	return nil, nil
}

// sharing is for what Envoy compares as a whole; a default that is written out
// differs from one that is not.
func (n *Node) sharing(s Shared, field string, settings proto.Message) ([]Sharing, error) {
	b, err := Marshal(settings)
	if err != nil {
		return nil, err
	}
	path := n.Path()
	if field != "" {
		path = path.Field(field)
	}
	return []Sharing{{Shared: s, Path: path, Settings: string(b)}}, nil
}

// buckets are those of bandwidth_share, of which Envoy compares three values.
func (n *Node) buckets(m *bandwidthsharev3.BandwidthShare) []Sharing {
	interval := int64(50) // milliseconds
	if m.GetFillInterval() != nil {
		interval = m.GetFillInterval().AsDuration().Milliseconds()
	}
	var list []Sharing
	for _, limit := range []struct {
		field string
		of    *bandwidthsharev3.BandwidthShare_Limit
	}{{"request_limit", m.GetRequestLimit()}, {"response_limit", m.GetResponseLimit()}} {
		if limit.of != nil {
			list = append(list, Sharing{
				Shared:   Shared{"bandwidth bucket", limit.of.GetBucketId()},
				Path:     n.Path().Field(limit.field).Field("bucket_id"),
				Settings: fmt.Sprintf("%q %d %d", limit.of.GetKbps().GetRuntimeKey(), limit.of.GetKbps().GetDefaultValue(), interval),
			})
		}
	}
	return list
}
