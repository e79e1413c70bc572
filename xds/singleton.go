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

// Singleton names an object that a whole Envoy shares. Its first user sets its settings: while
// the object exists, Envoy refuses a user with other settings.
type Singleton struct {
	// Noun is the kind in words, Name the name among singletons of the kind.
	Noun, Name string
}

func (s Singleton) String() string { return fmt.Sprintf("%s %q", s.Noun, s.Name) }

// SingletonUse is a field that uses a Singleton, with the settings that it asks for.
type SingletonUse struct {
	Singleton
	// Path is the path of the name, set or not.
	Path Path
	// Settings are equal texts if Envoy compares the settings as equal.
	Settings string
	// Tolerated means that Envoy silently ignores different settings here.
	Tolerated bool
}

// SingletonMessages are the messages that use a Singleton. Envoy compares the settings of each kind in its own way,
// so Node.Singletons has code for each kind.
var SingletonMessages = []protoreflect.FullName{
	"envoy.extensions.common.async_files.v3.AsyncFileManagerConfig",
	"envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig",
	"envoy.extensions.filters.http.bandwidth_share.v3.BandwidthShare",
	"envoy.extensions.http.cache.file_system_http_cache.v3.FileSystemHttpCacheConfig",
	"envoy.extensions.http.cache_v2.file_system_http_cache.v3.FileSystemHttpCacheV2Config",
}

// Singletons returns the uses of singletons in the node's message. The error means that the settings have no
// canonical form.
func (n *Node) Singletons() ([]SingletonUse, error) {
	switch m := n.Message.(type) {
	case *dfpv3.DnsCacheConfig:
		list, err := n.singleton(Singleton{"DNS cache", m.GetName()}, "name", m)
		for i := range list {
			list[i].Tolerated = n.Field() == "envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.ConnPoolSettings.dns_cache_config"
		}
		return list, err
	case *asyncfilesv3.AsyncFileManagerConfig:
		return n.singleton(Singleton{"file manager", m.GetId()}, "", m)
	case *cachev3.FileSystemHttpCacheConfig:
		c := proto.CloneOf(m)
		c.CachePath = strings.TrimSuffix(c.GetCachePath(), "/") // Envoy adds a missing slash
		return n.singleton(Singleton{"HTTP cache", c.GetCachePath()}, "cache_path", c)
	case *cachev2v3.FileSystemHttpCacheV2Config:
		c := proto.CloneOf(m)
		c.CachePath = strings.TrimSuffix(c.GetCachePath(), "/")
		return n.singleton(Singleton{"HTTP cache (v2)", c.GetCachePath()}, "cache_path", c)
	case *bandwidthsharev3.BandwidthShare:
		return n.buckets(m), nil
	}
	return nil, nil
}

// singleton returns the use of a singleton whose settings Envoy compares as a whole. A field that is set to its
// default differs from an absent field. field is the field of the name; empty if the name has no place of its own.
func (n *Node) singleton(s Singleton, field string, settings proto.Message) ([]SingletonUse, error) {
	b, err := Marshal(settings)
	if err != nil {
		return nil, err
	}
	path := n.Path()
	if field != "" {
		path = path.Field(field)
	}
	return []SingletonUse{{Singleton: s, Path: path, Settings: string(b)}}, nil
}

// buckets returns the uses of bandwidth buckets. Envoy compares three values of each: the runtime key, the rate and
// the fill interval.
func (n *Node) buckets(m *bandwidthsharev3.BandwidthShare) []SingletonUse {
	interval := int64(50) // milliseconds
	if m.GetFillInterval() != nil {
		interval = m.GetFillInterval().AsDuration().Milliseconds()
	}
	var list []SingletonUse
	for _, limit := range []struct {
		field string
		of    *bandwidthsharev3.BandwidthShare_Limit
	}{{"request_limit", m.GetRequestLimit()}, {"response_limit", m.GetResponseLimit()}} {
		if limit.of != nil {
			list = append(list, SingletonUse{
				Singleton: Singleton{"bandwidth bucket", limit.of.GetBucketId()},
				Path:      n.Path().Field(limit.field).Field("bucket_id"),
				Settings:  fmt.Sprintf("%q %d %d", limit.of.GetKbps().GetRuntimeKey(), limit.of.GetKbps().GetDefaultValue(), interval),
			})
		}
	}
	return list
}
