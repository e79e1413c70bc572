package rest

import (
	"bytes"
	"encoding/json"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/serve/cache"
	"xdspub/xds"
)

// content is an immutable Snapshot with the responses made from it.
type content struct {
	*xds.Snapshot
	// whole returns, by type, the response with all resources.
	whole map[*xds.Type]func() ([]byte, error)
	// secret returns, by type, the resources that hold a secret.
	secret map[*xds.Type]func() []*xds.Resource
}

// next returns the content for a Snapshot. next reuses the responses of c for types with an equal version. c
// may be nil.
func (c *content) next(s *xds.Snapshot) *content {
	n := &content{Snapshot: s, whole: make(map[*xds.Type]func() ([]byte, error)), secret: make(map[*xds.Type]func() []*xds.Resource)}
	for _, t := range types {
		// Constraints may differ even if the resources are equal.
		n.secret[t] = sync.OnceValue(func() []*xds.Resource { return withSecret(n.Of(t)) })
		if c != nil && c.Version(t) == s.Version(t) {
			n.whole[t] = c.whole[t]
			continue
		}
		resources, version := s.Of(t), s.Version(t) // later contents share the response, so it must not refer to n
		n.whole[t] = sync.OnceValues(func() ([]byte, error) { return response(t, version, resources) })
	}
	return n
}

// selected is the answer to a request.
type selected struct {
	// version is "" if the request needs no answer: for most types, a missing resource is not reported to
	// clients.
	version string
	body    func() ([]byte, error)
	// secret returns the selected resources that hold a secret.
	secret func() []*xds.Resource
}

func withSecret(list []*xds.Resource) (secret []*xds.Resource) {
	for _, r := range list {
		if r.HoldsSecret() {
			secret = append(secret, r)
		}
	}
	return secret
}

// selected returns the answer to a request. Its version covers only the requested resources, so that changes
// of other resources don't wake the client.
func (c *content) selected(q *request) selected {
	if q.All {
		return selected{c.Version(q.Type), c.whole[q.Type], c.secret[q.Type]}
	}
	var found []*xds.Resource
	var are [][]byte
	for _, name := range q.Names {
		if r := c.Lookup(q.Type, name); r != nil {
			found = append(found, r)
			are = append(are, []byte(name), []byte(r.Version()))
		}
	}
	if len(found) == 0 && (!cache.HoldsAll(q.Type) || q.Version == "") {
		return selected{}
	}
	version := xds.Version(are)
	return selected{
		version: version,
		body:    func() ([]byte, error) { return response(q.Type, version, found) },
		secret:  func() []*xds.Resource { return withSecret(found) },
	}
}

// response encodes a DiscoveryResponse as JSON. The version needs no escapes.
func response(of *xds.Type, version string, resources []*xds.Resource) ([]byte, error) {
	list := make([][]byte, 0, len(resources))
	for _, r := range resources {
		text, err := textOf(r)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	var b bytes.Buffer
	b.WriteString(`{"version_info":"` + version + `","type_url":"` + of.URL() + `","resources":[`)
	b.Write(bytes.Join(list, []byte(",")))
	b.WriteString("]}")
	return b.Bytes(), nil
}

// textKey is the key under which a resource caches its JSON.
type textKey struct{}

// textOf returns the cached JSON of a resource.
func textOf(r *xds.Resource) ([]byte, error) {
	return r.Kept(textKey{}, func() any {
		return sync.OnceValues(func() ([]byte, error) { return encode(r) })
	}).(func() ([]byte, error))()
}

// encode encodes a resource as JSON, with the field names of Envoy's documentation. encode compacts the JSON,
// because protojson varies its spaces from build to build.
func encode(r *xds.Resource) ([]byte, error) {
	body, err := r.Canonical()
	if err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: r.Registry}.Marshal(&anypb.Any{TypeUrl: r.Type.URL(), Value: body})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Compact(&b, text)
	return b.Bytes(), err
}
