package filter

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var conflictingCache = &validate.Rule{
	Code: "conflicting-cache",
	Doc: `Two caches or bandwidth buckets have the same name and different settings.

DNS caches of the dynamic forward proxy, alternate protocols caches, HTTP caches in a
directory and the buckets of bandwidth_share belong to the whole Envoy: all users of a name
share one object. Envoy rejects a second user whose settings differ in any detail ("config
specified DNS cache 'x' with different settings", "mismatched FileSystemHttpCacheConfig with
same path", "to have different config you must use a distinct bucket_id"). It accepts
redis_proxy with other settings and ignores them (a warning).`,
	Collect: slices.DeleteFunc(append(slices.Clone(xds.SingletonMessages), "envoy.config.core.v3.AlternateProtocolsCacheOptions"),
		func(name protoreflect.FullName) bool {
			return name == asyncFileManager
		}),
	ByName:   true,
	Snapshot: reportConflicts,
}
