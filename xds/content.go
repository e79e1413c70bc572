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

// content is the decoded message of a resource, and what a walk found in it.
type content struct {
	message proto.Message
	facts   atomic.Pointer[Facts] // nil until somebody asks
}

// holder holds the content of a resource, or decodes it again.
type holder struct {
	held atomic.Pointer[content] // nil once the resource is unloaded
	// lent is the content held or decoded last, until the garbage collector takes it.
	lent atomic.Pointer[weak.Pointer[content]]
}

// Message returns the message. It must not be changed once the resource is in a Snapshot.
func (r *Resource) Message() proto.Message { return r.content().message }

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

// decode makes the message of its canonical form.
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

// Unload drops the decoded message and the Facts, which take ten times the space of the canonical form. The
// next use decodes them again, so Unload is for a resource that nobody reads until an edit. A resource whose
// canonical form loses a part of its message stays loaded. Listeners stay loaded, too: they are few, and an
// edit of one is compared with all.
func (r *Resource) Unload() {
	c := r.holder.held.Load()
	if c == nil || r.Type == nil || r.Type == Listener {
		return
	}
	f := r.Facts()
	if _, err := r.Canonical(); err != nil || f.otherURL {
		return
	}
	r.brief.Store(uint32(f.brief())) // others may do the same meanwhile
	r.holder.lend(c)
	r.holder.held.Store(nil)
}

// AsksFor reports whether the resource subscribes to resources of type t. It decodes nothing.
func (r *Resource) AsksFor(t *Type) bool { return r.inBrief()&asksFor(t) != 0 }

// UsesSingletons reports whether the resource uses singletons, or may. It decodes nothing.
func (r *Resource) UsesSingletons() bool { return r.inBrief()&usesSingletons != 0 }

func (r *Resource) inBrief() brief {
	if r.holder.held.Load() == nil {
		return brief(r.brief.Load())
	}
	return r.Facts().brief()
}

// brief is what those who look for a few of all resources ask first: a bit for each of Types that
// a resource subscribes to, usesSingletons and holdsSecrets.
type brief uint32

const (
	usesSingletons brief = 1 << 31
	holdsSecrets   brief = 1 << 30
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
	return b
}

// Facts returns the facts of the resource. They must not be changed.
func (r *Resource) Facts() *Facts {
	c := r.content()
	if c.facts.Load() == nil {
		_ = c.walk(context.Background(), r.Registry, func(*Node) {}) // which does not end
	}
	return c.facts.Load()
}
