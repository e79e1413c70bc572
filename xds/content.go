package xds

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"weak"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// content is the decoded message of a resource, with its Facts.
type content struct {
	message proto.Message
	facts   atomic.Pointer[Facts] // nil before the first walk
}

// holder refers to the content of a resource.
type holder struct {
	held atomic.Pointer[content] // nil if the resource is unloaded
	// lent is the content that an unloaded resource had or decoded last, until the garbage collector frees it.
	lent atomic.Pointer[weak.Pointer[content]]
}

// Message returns the message of the resource. The message of a resource in a Snapshot must not be changed.
func (r *Resource) Message() proto.Message { return r.content().message }

// content returns the content of the resource. It decodes the content of an unloaded resource.
func (r *Resource) content() *content {
	if c := r.holder.held.Load(); c != nil {
		return c
	}
	if c := r.holder.lent.Load().Value(); c != nil {
		return c
	}
	c := &content{message: r.decode()}
	r.holder.lend(c)
	return c
}

func (h *holder) lend(c *content) {
	lent := weak.Make(c)
	h.lent.Store(&lent)
}

// decode returns the message that the canonical form encodes.
func (r *Resource) decode() proto.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(r.Type.Message)
	if err == nil {
		m := mt.New().Interface()
		if err = proto.Unmarshal(*r.canonical.Load(), m); err == nil {
			return m
		}
	}
	panic(fmt.Sprintf("decode %v, which Canonical encoded: %v", r.Key, err))
}

// Unload drops the decoded message and the Facts, which take ten times the space of the canonical form. The next
// use decodes them again, so Unload is for a resource that nobody reads until an edit. A resource stays loaded if
// its canonical form lacks a part of its message, as the prefix of a type URL. Listeners stay loaded, too: they are
// few, and an edited listener is compared with all listeners.
func (r *Resource) Unload() {
	c := r.holder.held.Load()
	if c == nil || r.Type == nil || r.Type == Listener {
		return
	}
	f := r.Facts()
	if _, err := r.Canonical(); err != nil || f.otherURL {
		return
	}
	r.brief.Store(uint32(f.brief())) // another goroutine may unload r at the same time, and stores the same value
	r.holder.lend(c)
	r.holder.held.Store(nil)
}

// AsksFor reports whether the resource subscribes to resources of type t. It does not decode an unloaded resource.
func (r *Resource) AsksFor(t *Type) bool { return r.inBrief()&asksFor(t) != 0 }

// UsesSingletons reports whether the resource has Singletons or a SingletonsErr in its Facts. It does not decode an
// unloaded resource.
func (r *Resource) UsesSingletons() bool { return r.inBrief()&usesSingletons != 0 }

// HasEndpoints reports whether the resource lists endpoints, as an endpoint assignment or as a cluster with one. It
// does not decode an unloaded resource.
func (r *Resource) HasEndpoints() bool { return r.inBrief()&hasEndpoints != 0 }

// inBrief returns the brief of the resource.
func (r *Resource) inBrief() brief {
	if r.holder.held.Load() == nil {
		return brief(r.brief.Load())
	}
	return r.Facts().brief()
}

// brief is a set of facts that stay known after Unload: a bit for each of Types that the resource subscribes to,
// usesSingletons, holdsSecrets and hasEndpoints. A search for a few resources among all asks for the brief first.
type brief uint32

const (
	usesSingletons brief = 1 << 31
	holdsSecrets   brief = 1 << 30
	hasEndpoints   brief = 1 << 29
)

func asksFor(t *Type) brief { return 1 << slices.Index(Types, t) }

func (f *Facts) brief() (b brief) {
	for _, s := range f.Subscriptions {
		b |= asksFor(s.Target)
	}
	if f.SingletonsErr != nil || len(f.Singletons) > 0 {
		b |= usesSingletons
	}
	if f.HoldsSecret {
		b |= holdsSecrets
	}
	if f.HasEndpoints {
		b |= hasEndpoints
	}
	return b
}

// Facts returns the facts of the resource. The caller must not change the facts.
func (r *Resource) Facts() *Facts {
	c := r.content()
	if c.facts.Load() == nil {
		_ = c.walk(context.Background(), r.Registry, func(*Node) {}) // no error: Background does not end
	}
	return c.facts.Load()
}
