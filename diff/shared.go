package diff

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	asyncfilesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/async_files/v3"
	dfpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	bandwidthsharev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/bandwidth_share/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/cache/file_system_http_cache/v3"
	cachev2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/cache_v2/file_system_http_cache/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// sharing are the types of the resources that can ask for something shared.
var sharing = []*xds.Type{xds.Cluster, xds.Listener, xds.ExtensionConfig, xds.RouteConfiguration, xds.ScopedRoutes, xds.VirtualHost}

// sharedMessages finds what sharedAt reads.
var sharedMessages = xds.NewSearch(
	"envoy.extensions.common.async_files.v3.AsyncFileManagerConfig",
	"envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig",
	"envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare",
	"envoy.extensions.http.cache.file_system_http_cache.v3.FileSystemHttpCacheConfig",
	"envoy.extensions.http.cache_v2.file_system_http_cache.v3.FileSystemHttpCacheV2Config",
)

// sharedIn are the places that ask for something shared, in the resources that of
// gives.
func sharedIn(of func(*xds.Type) ([]*xds.Resource, error)) ([]shared, error) {
	var all []shared
	for _, t := range sharing {
		resources, err := of(t)
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			if c, ok := r.Message.(*clusterv3.Cluster); ok && isPlain(c) {
				continue
			}
			var failed error
			sharedMessages.Walk(r.Message, func(n *xds.Node) {
				list, err := sharedAt(n)
				if failed == nil {
					failed = err
				}
				for _, s := range list {
					s.in = r
					all = append(all, s)
				}
			})
			if failed != nil {
				return nil, fmt.Errorf("%s: %w", r.Key, failed)
			}
		}
	}
	return all, nil
}

// sharedKey names something that belongs to the whole Envoy.
type sharedKey struct {
	// noun is what it is.
	noun string
	// name is the field's value that tells it from others.
	name string
}

// shared is a place that asks for it with some settings.
type shared struct {
	sharedKey
	in       *xds.Resource
	path     xds.Path
	settings string // equal where Envoy takes them for equal
}

// isPlain tells whether a cluster has nothing in which it could ask for something
// shared: most have not, and a walk over the endpoints of ten thousand takes time.
func isPlain(c *clusterv3.Cluster) bool {
	return c.GetClusterType() == nil && len(c.GetTypedExtensionProtocolOptions()) == 0 && len(c.GetFilters()) == 0
}

// sharedAt are the shared things that a message asks for.
func sharedAt(n *xds.Node) ([]shared, error) {
	if n.InMetadata() {
		return nil, nil
	}
	switch m := n.Message.(type) {
	case *dfpv3.DnsCacheConfig:
		if n.Field() == "envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.ConnPoolSettings.dns_cache_config" {
			return nil, nil // each proxy has its own
		}
		return whole(n, m, sharedKey{"DNS cache", m.GetName()}, "name")
	case *asyncfilesv3.AsyncFileManagerConfig:
		return whole(n, m, sharedKey{"file manager", m.GetId()}, "")
	case *cachev3.FileSystemHttpCacheConfig:
		c := proto.CloneOf(m)
		c.CachePath = strings.TrimSuffix(c.GetCachePath(), "/") // Envoy adds one where there is none
		return whole(n, c, sharedKey{"HTTP cache", c.GetCachePath()}, "cache_path")
	case *cachev2v3.FileSystemHttpCacheV2Config:
		c := proto.CloneOf(m)
		c.CachePath = strings.TrimSuffix(c.GetCachePath(), "/")
		return whole(n, c, sharedKey{"HTTP cache (v2)", c.GetCachePath()}, "cache_path")
	case *bandwidthsharev3.BandwidthShare:
		return buckets(n, m), nil
	}
	return nil, nil
}

// whole is for what is compared as a whole; a default that is written out differs
// from one that is not.
func whole(n *xds.Node, m proto.Message, key sharedKey, field string) ([]shared, error) {
	b, err := xds.Marshal(m)
	if err != nil {
		return nil, err
	}
	at := n.Path()
	if field != "" {
		at = at.Field(field)
	}
	return []shared{{sharedKey: key, path: at, settings: string(b)}}, nil
}

// buckets are those of bandwidth_share, of which Envoy compares three values.
func buckets(n *xds.Node, m *bandwidthsharev3.BandwidthShare) []shared {
	interval := int64(50) // milliseconds
	if m.GetFillInterval() != nil {
		interval = m.GetFillInterval().AsDuration().Milliseconds()
	}
	var list []shared
	for _, limit := range []struct {
		field string
		of    *bandwidthsharev3.BandwidthShare_Limit
	}{{"request_limit", m.GetRequestLimit()}, {"response_limit", m.GetResponseLimit()}} {
		if limit.of != nil {
			list = append(list, shared{
				sharedKey: sharedKey{"bandwidth bucket", limit.of.GetBucketId()},
				path:      n.Path().Field(limit.field).Field("bucket_id"),
				settings:  fmt.Sprintf("%q %d %d", limit.of.GetKbps().GetRuntimeKey(), limit.of.GetKbps().GetDefaultValue(), interval),
			})
		}
	}
	return list
}
