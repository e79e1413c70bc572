package xds

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds/params"
)

// Key is the type and the name of a resource. Variants of a resource share a Key, and so do duplicates.
type Key struct {
	Type *Type
	Name string
}

func (k Key) String() string {
	if k.Name == "" {
		return k.Type.Noun + " without a name"
	}
	return fmt.Sprintf("%s %q", k.Type.Noun, k.Name)
}

// Origin finds where a field of a resource stands in the source.
type Origin interface {
	// Range returns the range of the value at path, or of its key if the value stands on the lines below. If
	// the source has no such field, Range returns the nearest field around it.
	Range(path Path) diag.Range
	// InWrapper is Range for a path in the wrapper around the resource.
	InWrapper(path Path) diag.Range
	// Constraints returns the place of the resource's constraints in its own wrapper or, if own is false, in a
	// settings file around it.
	Constraints(own bool) diag.Range
	// Correct returns the edit that replaces c.Wrong by c.Right in the value at path or, if path ends with the key
	// c.Wrong of a map, in the key. ok is false unless the source has c.Wrong there exactly once.
	Correct(path Path, c diag.Correction) (edit diag.Edit, ok bool)
	// Shows reports whether a finding may quote the line of the value at path, because the line can't hold a secret
	// of the resource.
	Shows(path Path) bool
}

// Resource is an xDS resource. A Resource in a Snapshot must not be changed.
type Resource struct {
	Key
	Origin Origin
	// Meta is the Resource wrapper around the resource in the source, without the resource: its name, aliases,
	// TTL, cache control and metadata. Meta is nil without a wrapper. Files carry the content without the
	// wrapper.
	Meta *discoveryv3.Resource
	// Lost lists the parts of the source that the message lacks; mostly nil.
	Lost Lost
	// Unset lists the fields that the source sets to their default value, and that the Envoy of the resource does
	// not know. The message can't tell these fields from absent fields. Unset is nil for most resources.
	Unset []Unset
	// DeliveredBy is StaticResources or the path of a file if the Snapshot is from a bootstrap, and empty
	// otherwise. It tells resources of one Key apart.
	DeliveredBy string
	// Registry has the types that the Anys may hold; nil for the API's types.
	Registry *Registry
	// For selects the clients of the resource, if it is one of several variants of its Key. Most resources are
	// for all clients. Compose joins the constraints of the parts by And.
	For params.Constraints
	// Owner is the folder that owns the resource, as a path below the source tree; empty if the resource is shared.
	Owner string
	// Packed means that all payloads in the message are in the form of Marshal, as protojson
	// packs them.
	Packed bool

	secrets *params.Constraints // the result of SecretFor; nil unless the resource is composed
	holder  holder
	brief   atomic.Uint32 // the brief of an unloaded resource
	// The next three are nil until their first use.
	canonical atomic.Pointer[[]byte]
	digest    atomic.Pointer[digest]
	kept      atomic.Pointer[kept]
}

// kept is a list of what a resource keeps.
type kept struct {
	key, value any
	next       *kept
}

// Kept returns the value that the resource caches under a key. Without a value, Kept calls build and caches
// the result as long as the resource lives. Two goroutines may both call build; both get the same value. The
// type of the key belongs to the package that calls Kept.
func (r *Resource) Kept(key any, build func() any) any {
	first := r.kept.Load()
	if value, ok := first.under(key); ok {
		return value
	}
	entry := &kept{key: key, value: build(), next: first}
	for !r.kept.CompareAndSwap(entry.next, entry) {
		entry.next = r.kept.Load()
		if value, ok := entry.next.under(key); ok {
			return value
		}
	}
	return entry.value
}

// IfKept returns the value that the resource caches under a key; ok is false without a value.
func (r *Resource) IfKept(key any) (value any, ok bool) { return r.kept.Load().under(key) }

// under returns the value of a key.
func (k *kept) under(key any) (value any, ok bool) {
	for ; k != nil; k = k.next {
		if k.key == key {
			return k.value, true
		}
	}
	return nil, false
}

// Unset is a field of the source that the message lacks.
type Unset struct {
	Path  Path
	Field protoreflect.FullName
}

// StaticResources is the DeliveredBy of the static resources of a bootstrap.
const StaticResources = "static_resources"

// NewResource returns a Resource of a message, or an error if the table of types lacks the message's type. name is
// the name in a Resource wrapper, or "". It is the name of the resource only if clients ask for the type InGroups,
// or if messages of the type have no name. Otherwise, the name in the message is the name of the resource.
func NewResource(m proto.Message, name string, o Origin) (*Resource, error) {
	r := m.ProtoReflect()
	t := TypeOf(r.Descriptor().FullName())
	if t == nil {
		return nil, fmt.Errorf("%s is not an xDS resource type", r.Descriptor().FullName())
	}
	if field := r.Descriptor().Fields().ByName(t.Name); field != nil && (name == "" || t.Asked != InGroups) {
		name = r.Get(field).String()
	}
	res := ResourceOf(Key{t, name}, m)
	res.Origin = o
	return res, nil
}

// ResourceOf returns a Resource of a message under a Key, without a place in a source.
func ResourceOf(k Key, m proto.Message) *Resource {
	r := &Resource{Key: k}
	r.holder.held.Store(&content{message: m})
	return r
}

// With returns a copy of the resource with another message, such as a message with bound config sources. The copy
// is not Packed.
func (r *Resource) With(m proto.Message) *Resource {
	with := ResourceOf(r.Key, m)
	with.Origin, with.Meta, with.Lost, with.Unset = r.Origin, r.Meta, r.Lost, r.Unset
	with.DeliveredBy, with.Registry, with.For, with.Owner, with.secrets = r.DeliveredBy, r.Registry, r.For, r.Owner, r.secrets
	return with
}

// Renamed returns a copy of the resource under another name. The name in the message stays.
func (r *Resource) Renamed(name string) *Resource {
	is := &Resource{
		Key: Key{r.Type, name}, Origin: r.Origin, Meta: r.Meta, Lost: r.Lost, Unset: r.Unset,
		DeliveredBy: r.DeliveredBy, Registry: r.Registry, For: r.For, Owner: r.Owner, secrets: r.secrets, Packed: r.Packed,
	}
	is.brief.Store(r.brief.Load())
	is.canonical.Store(r.canonical.Load())
	if held := r.holder.held.Load(); held != nil {
		is.holder.held.Store(held)
	} else {
		is.holder.lend(r.content())
	}
	return is
}

// OwnedBy returns a copy of the resource with another Owner, or the resource itself if it has the Owner.
func (r *Resource) OwnedBy(owner string) *Resource {
	if r.Owner == owner {
		return r
	}
	is := r.Renamed(r.Name)
	is.Owner = owner
	return is
}

// Canonical returns the canonical form of the message (Marshal). The caller must not change the bytes.
func (r *Resource) Canonical() ([]byte, error) {
	if b := r.canonical.Load(); b != nil {
		return *b, nil
	}
	marshal := r.Registry.Marshal
	if f := r.Facts(); !f.holdsAny || r.Packed && !f.otherURL {
		marshal = marshalPacked
	}
	b, err := marshal(r.Message())
	if err != nil {
		return nil, err
	}
	r.canonical.Store(&b)
	return b, nil
}

// HeldIn saves memory: if data contains the cached result of Canonical, the resource refers to data instead of its
// own copy. Nobody may change data afterwards.
func (r *Resource) HeldIn(data []byte) {
	b := r.canonical.Load()
	if b == nil || len(*b) == 0 {
		return
	}
	if i := bytes.Index(data, *b); i >= 0 {
		part := data[i : i+len(*b) : i+len(*b)]
		r.canonical.Store(&part)
	}
}

// Version returns the hash of the resource's canonical form and of its wrapper, if any. Delta xDS sends this
// hash as the version. Version is empty if the resource has no canonical form.
func (r *Resource) Version() string {
	b, err := r.Canonical()
	if err != nil {
		return ""
	}
	parts := [][]byte{b}
	if says := r.wrapperSays(); len(says) > 0 {
		parts = append(parts, says)
	}
	return Version(parts)
}

// wrapperSays returns the canonical form of the wrapper without its name, constraints and version; nil without a
// wrapper. Clients of a server get these fields.
func (r *Resource) wrapperSays() []byte {
	if r.Meta == nil {
		return nil
	}
	m := proto.CloneOf(r.Meta)
	m.Name, m.ResourceName, m.Version = "", nil, ""
	b, err := Marshal(m)
	if err != nil {
		return nil // without a canonical form, no version exists
	}
	return b
}

// OfBootstrap reports whether the resource is a bootstrap or stands in a bootstrap. Envoy loads such a resource
// before the resources of any subscription.
func (r *Resource) OfBootstrap() bool { return r.Type == Bootstrap || r.DeliveredBy == StaticResources }

// Refusal describes, in words, Envoy's reaction to a resource that it does not accept.
func (r *Resource) Refusal() string {
	if r.OfBootstrap() {
		return "Envoy does not start"
	}
	return "Envoy rejects the " + r.Type.Noun
}

// At returns the range of the field at path in the source; the zero Range without an Origin. If path is empty and
// only the wrapper has the name of the resource, At returns the range of this name.
func (r *Resource) At(path Path) diag.Range {
	switch {
	case r.Origin == nil:
		return diag.Range{}
	case path != "" || r.Type.Name != "" || r.Meta == nil:
		return r.Origin.Range(path)
	case r.Meta.GetResourceName() != nil:
		return r.Origin.InWrapper("resource_name.name")
	}
	return r.Origin.InWrapper("name")
}

// File returns the file of the source that the resource is in; empty without an Origin. File does not parse the source,
// if the Origin has a method File.
func (r *Resource) File() string {
	switch o := r.Origin.(type) {
	case nil:
		return ""
	case interface{ File() string }:
		return o.File()
	}
	return r.Origin.Range("").File
}

// Diagnostic returns a finding of severity Error about the field at path. If the field is a credential, Diagnostic
// replaces the credential in message by "…".
func (r *Resource) Diagnostic(code string, path Path, message string) diag.Diagnostic {
	at := r.At(path)
	d := diag.Diagnostic{
		Code:      code,
		Position:  at.Position,
		End:       at.End,
		Resource:  diag.Resource{Type: r.Type.URL(), Name: r.Name},
		Path:      string(path),
		Message:   message,
		Sensitive: r.Type == Secret || r.Facts().fieldHoldsSecret && (r.Origin == nil || !r.Origin.Shows(path)),
	}
	around := d.Path[:max(0, strings.LastIndexByte(d.Path, '.'))]
	for _, at := range []string{d.Path, around} {
		if value, ok := r.Facts().credentials[at]; ok {
			d.Sensitive = true
			d.Message = strings.ReplaceAll(d.Message, value, "…")
		}
	}
	return d
}

// HoldsSecret reports whether the resource may hold secret content, such as a key. It does not decode an unloaded
// resource.
func (r *Resource) HoldsSecret() bool { return r.Type == Secret || r.inBrief()&holdsSecrets != 0 }

// ConstraintsAt returns the place of the resource's constraints, or the place of the resource if it has none.
func (r *Resource) ConstraintsAt() diag.Range {
	own := r.HasOwnConstraints()
	switch {
	case r.Origin == nil:
		return diag.Range{}
	case r.For.None() && !own:
		return r.Origin.Range("")
	}
	return r.Origin.Constraints(own)
}

// HasOwnConstraints reports whether the resource's own wrapper says which clients it is for, and not only the folders
// around its file.
func (r *Resource) HasOwnConstraints() bool {
	return r.Meta.GetResourceName().GetDynamicParameterConstraints() != nil
}

// RoutesOfHost returns the name of the route configuration that a VHDS resource belongs to, or "" if the name of
// the resource has no slash. The name is <route configuration>/<virtual host>. The part behind the last slash is a
// domain, and so has no slash.
func RoutesOfHost(name string) string { return name[:max(strings.LastIndexByte(name, '/'), 0)] }
