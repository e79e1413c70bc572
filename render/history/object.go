package history

import (
	"crypto/sha256"
	"errors"
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
	"xdspub/xds/params"
)

// hash names an object.
type hash [sha256.Size]byte

func hashOf(object []byte) hash { return sha256.Sum256(object) }

// The first byte of an object is its kind, so that no resource can pass for a node.
const (
	kindResource = 'r'
	kindLeaf     = 'l'
	kindBranch   = 'b'
)

const wrapperURL = xds.URLPrefix + "envoy.service.discovery.v3.Resource"

// encode returns a resource as an object: an element of DiscoveryResponse.resources.
func encode(r *xds.Resource) ([]byte, error) {
	element, err := elementOf(r)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{kindResource}, element)
}

// elementOf returns a resource as an element of DiscoveryResponse.resources. The constraints that settings files add to
// a resource are in its wrapper.
func elementOf(r *xds.Resource) (*anypb.Any, error) {
	canonical, err := r.Canonical()
	if err != nil {
		return nil, fmt.Errorf("encode %v: %w", r.Key, err)
	}
	element := &anypb.Any{TypeUrl: r.Type.URL(), Value: canonical}
	if r.Meta == nil && r.For.None() {
		return element, nil
	}
	if _, err := params.Parse(r.For.Proto()); err != nil { // those of settings files and of the wrapper together
		return nil, fmt.Errorf("encode the constraints of %v: %w", r.Key, err)
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(wrapperOf(r, element))
	if err != nil {
		return nil, fmt.Errorf("encode the wrapper of %v: %w", r.Key, err)
	}
	return &anypb.Any{TypeUrl: wrapperURL, Value: value}, nil
}

// wrapperOf returns the wrapper of a resource, with the resource and all its constraints. The name in the wrapper gets
// the spelling of Resource.Name.
func wrapperOf(r *xds.Resource, element *anypb.Any) *discoveryv3.Resource {
	w := &discoveryv3.Resource{}
	if r.Meta != nil {
		w = proto.CloneOf(r.Meta)
	}
	w.Resource = element
	c := r.For.Proto()
	switch {
	case c != nil, w.GetResourceName() != nil:
		w.Name, w.ResourceName = "", &discoveryv3.ResourceName{Name: r.Name, DynamicParameterConstraints: c}
	case w.GetName() != "":
		w.Name = r.Name
	}
	return w
}

// nameIn returns the name in a wrapper.
func nameIn(w *discoveryv3.Resource) string {
	if w.GetName() != "" {
		return w.GetName()
	}
	return w.GetResourceName().GetName()
}

// decode returns the resource that an object encodes. g has the types in the resource.
func decode(object []byte, g *xds.Registry) (*xds.Resource, error) {
	element, err := elementIn(object)
	if err != nil {
		return nil, err
	}
	return resourceOf(element, g)
}

// resourceOf returns the resource in an element of DiscoveryResponse.resources.
func resourceOf(element *anypb.Any, g *xds.Registry) (*xds.Resource, error) {
	var w *discoveryv3.Resource
	if element.GetTypeUrl() == wrapperURL {
		w = &discoveryv3.Resource{}
		if err := proto.Unmarshal(element.GetValue(), w); err != nil {
			return nil, err
		}
		element, w.Resource = w.GetResource(), nil
	}
	m, err := element.UnmarshalNew()
	if err != nil {
		return nil, err
	}
	r, err := xds.NewResource(m, nameIn(w), nil)
	if err != nil {
		return nil, err
	}
	r.Meta, r.Registry = w, g
	r.For, err = params.Parse(w.GetResourceName().GetDynamicParameterConstraints())
	return r, err
}

// elementIn returns the element of DiscoveryResponse.resources that an object is.
func elementIn(object []byte) (*anypb.Any, error) {
	if len(object) == 0 || object[0] != kindResource {
		return nil, errors.New("the object is no resource")
	}
	element := &anypb.Any{}
	return element, proto.Unmarshal(object[1:], element)
}

// Document returns resources as a DiscoveryResponse in binary form, such as load.Parse reads. The resources have their
// wrappers, with TTLs and constraints of clients.
func Document(resources []*xds.Resource) ([]byte, error) {
	d := &discoveryv3.DiscoveryResponse{}
	for _, r := range resources {
		element, err := elementOf(r)
		if err != nil {
			return nil, err
		}
		d.Resources = append(d.Resources, element)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(d)
}
