package diff

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/xds"
)

// fromSnapshot returns a config source that asks the Snapshot itself, with the other settings of source.
func fromSnapshot(source *corev3.ConfigSource) *corev3.ConfigSource {
	is := &corev3.ConfigSource{}
	if source != nil {
		is = proto.CloneOf(source)
	}
	is.ResourceApiVersion = corev3.ApiVersion_V3
	is.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
	return is
}

// fieldsOf returns the fields that differ between the two versions of a resource.
func fieldsOf(e xds.Edited) []Field {
	c := &comparison{fields: []Field{}}
	shown := func(r *xds.Resource) protoreflect.Message {
		c.registry = r.Registry
		return r.Concealed(fingerprint).Message().ProtoReflect()
	}
	switch {
	case e.Was == nil:
		c.whole(shown(e.Is), Added)
	case e.Is == nil:
		c.whole(shown(e.Was), Removed)
	default:
		c.messages(place{}, shown(e.Was), shown(e.Is))
		if len(c.fields) == 0 && e.Was.Meta != nil || e.Is.Meta != nil && !proto.Equal(e.Was.Meta, e.Is.Meta) {
			c.meta(e)
		}
	}
	return c.fields
}

// comparison collects the fields in which two messages differ.
type comparison struct {
	registry *xds.Registry
	fields   []Field
}

// place is the place of a field in both messages.
type place struct {
	was, is xds.Path
	label   string
}

func (p place) field(name string) place {
	return place{p.was.Field(name), p.is.Field(name), join(p.label, name)}
}

func (p place) key(k string) place {
	return place{p.was.Key(k), p.is.Key(k), string(xds.Path(p.label).Key(k))}
}

// element returns the place of an element of a list. A number below 0 means that the list has no such element.
func (p place) element(was, is int, name string) place {
	q := place{label: string(xds.Path(p.label).Index(max(is, was)))}
	if is >= 0 {
		q.label = string(xds.Path(p.label).Index(is))
	}
	if name != "" {
		q.label = string(xds.Path(p.label).Key(name))
	}
	if was >= 0 {
		q.was = p.was.Index(was)
	}
	if is >= 0 {
		q.is = p.is.Index(is)
	}
	return q
}

func join(label, name string) string { return string(xds.Path(label).Field(name)) }

// add adds a field.
func (c *comparison) add(p place, change Change, was, is, byDefault string) {
	f := Field{Path: p.is, Label: clip(p.label), Change: change, Was: was, Is: is, Default: byDefault}
	switch {
	case p.is == "" || change == Removed:
		f.Path = p.was
	case p.was != p.is && p.was != "" && change != Added:
		f.WasPath = xds.Path(clip(string(p.was)))
	}
	if f.Path = xds.Path(clip(string(f.Path))); f.Label == string(f.Path) {
		f.Label = ""
	}
	c.fields = append(c.fields, f)
}

// whole adds the set fields of a message that only one side has.
func (c *comparison) whole(m protoreflect.Message, change Change) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); m.Has(fd) {
			p, value := place{}.field(string(fd.Name())), c.text(fd, m.Get(fd))
			if change == Added {
				c.add(p, Added, "", value, "")
			} else {
				c.add(p, Removed, value, "", "")
			}
		}
	}
}

// one adds a field that is set in only one of the two messages.
func (c *comparison) one(p place, fd protoreflect.FieldDescriptor, m protoreflect.Message, change Change) {
	value := c.text(fd, m.Get(fd))
	if change == Added {
		c.add(p, Added, "", value, defaultOf(fd))
	} else {
		c.add(p, Removed, value, "", defaultOf(fd))
	}
}

// meta adds the wrapper of a resource, which only clients of a server get.
func (c *comparison) meta(e xds.Edited) {
	text := func(r *xds.Resource) string {
		if r.Meta == nil {
			return ""
		}
		return c.message(r.Meta.ProtoReflect())
	}
	was, is := text(e.Was), text(e.Is)
	if was != is {
		c.add(place{label: "(wrapper)"}, Changed, was, is, "")
	}
}

// messages compares two messages of one type.
func (c *comparison) messages(p place, was, is protoreflect.Message) {
	switch a := was.Interface().(type) {
	case *anypb.Any:
		c.anys(p, a, is.Interface().(*anypb.Any))
		return
	case *structpb.Struct:
		c.structs(p, a, is.Interface().(*structpb.Struct))
		return
	}
	fields := was.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !was.Has(fd) && !is.Has(fd) || was.Has(fd) && is.Has(fd) && was.Get(fd).Equal(is.Get(fd)) {
			continue
		}
		c.field(p.field(string(fd.Name())), fd, was, is)
	}
}

// field compares a field that differs.
func (c *comparison) field(p place, fd protoreflect.FieldDescriptor, was, is protoreflect.Message) {
	switch {
	case fd.IsList():
		c.lists(p, fd, was.Get(fd).List(), is.Get(fd).List())
	case fd.IsMap():
		c.maps(p, fd, was.Get(fd).Map(), is.Get(fd).Map())
	case !is.Has(fd):
		c.one(p, fd, was, Removed)
	case !was.Has(fd):
		c.one(p, fd, is, Added)
	default:
		c.values(p, fd, was.Get(fd), is.Get(fd))
	}
}

// values compares two values that differ, and are no list or map.
func (c *comparison) values(p place, fd protoreflect.FieldDescriptor, was, is protoreflect.Value) {
	if fd.Message() != nil && !isValue(fd.Message()) {
		c.messages(p, was.Message(), is.Message())
		return
	}
	c.add(p, Changed, c.text(fd, was), c.text(fd, is), defaultOf(fd))
}

// isValue reports whether a message is compared as one value, such as a Duration.
func isValue(md protoreflect.MessageDescriptor) bool {
	return md.FullName().Parent() == "google.protobuf" && md.FullName() != "google.protobuf.Any" && md.FullName() != "google.protobuf.Struct"
}

// anys compares two payloads. Payloads of different types are one value.
func (c *comparison) anys(p place, was, is *anypb.Any) {
	a, b := c.registry.Unpack(was), c.registry.Unpack(is)
	if a == nil || b == nil || a.ProtoReflect().Descriptor() != b.ProtoReflect().Descriptor() {
		if !proto.Equal(was, is) {
			c.add(p, Changed, c.message(was.ProtoReflect()), c.message(is.ProtoReflect()), "")
		}
		return
	}
	if isValue(a.ProtoReflect().Descriptor()) {
		if !proto.Equal(a, b) {
			c.add(p, Changed, c.message(a.ProtoReflect()), c.message(b.ProtoReflect()), "")
		}
		return
	}
	c.messages(p, a.ProtoReflect(), b.ProtoReflect())
}

// structs compares two objects key by key.
func (c *comparison) structs(p place, was, is *structpb.Struct) {
	for _, k := range keys(was.GetFields(), is.GetFields()) {
		a, b := was.GetFields()[k], is.GetFields()[k]
		at := p.key(k)
		switch {
		case a == nil:
			c.add(at, Added, "", c.message(b.ProtoReflect()), "")
		case b == nil:
			c.add(at, Removed, c.message(a.ProtoReflect()), "", "")
		case a.GetStructValue() != nil && b.GetStructValue() != nil:
			c.structs(at, a.GetStructValue(), b.GetStructValue())
		case !proto.Equal(a, b):
			c.add(at, Changed, c.message(a.ProtoReflect()), c.message(b.ProtoReflect()), "")
		}
	}
}

// keys returns the keys of two maps, sorted.
func keys[V any](a, b map[string]V) []string {
	all := make([]string, 0, len(a))
	for k := range a {
		all = append(all, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}

// maps compares two maps key by key.
func (c *comparison) maps(p place, fd protoreflect.FieldDescriptor, was, is protoreflect.Map) {
	byText := make(map[string]protoreflect.MapKey)
	for _, m := range []protoreflect.Map{was, is} {
		m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
			byText[k.String()] = k
			return true
		})
	}
	of := fd.MapValue()
	for _, text := range keys(byText, nil) {
		k, at := byText[text], p.key(text)
		switch {
		case !was.Has(k):
			c.add(at, Added, "", c.text(of, is.Get(k)), "")
		case !is.Has(k):
			c.add(at, Removed, c.text(of, was.Get(k)), "", "")
		case !was.Get(k).Equal(is.Get(k)):
			c.values(at, of, was.Get(k), is.Get(k))
		}
	}
}

// clip returns a text from outside as it is shown: without secrets and control characters, at most mostValue bytes.
func clip(text string) string {
	return diag.ClipLine(diag.Hide(strings.ToValidUTF8(text, "\uFFFD")), mostValue)
}
