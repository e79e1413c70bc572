package xds_test

import (
	"regexp"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := xds.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func version(t testing.TB, messages ...proto.Message) string {
	t.Helper()
	var parts [][]byte
	for _, m := range messages {
		parts = append(parts, marshal(t, m))
	}
	return xds.Version(parts)
}

// extension returns a TypedExtensionConfig around payload bytes as they stand.
func extension(payload ...byte) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{Name: "n", TypedConfig: &anypb.Any{
		TypeUrl: "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", Value: payload}}
}

// Equal messages have one version, whatever bytes their source format left in
// the Anys.
func TestVersionOfEqualMessages(t *testing.T) {
	name, typed := []byte{0x0a, 1, 'x'}, []byte{0x12, 3, 0x0a, 1, 'u'} // name: x; typed_config: {type_url: u}
	inner := slices.Concat(name, typed)
	want := version(t, extension(inner...))
	nested := func(payload ...byte) *corev3.TypedExtensionConfig {
		b, err := proto.Marshal(extension(payload...))
		if err != nil {
			t.Fatal(err)
		}
		return extension(b...)
	}
	for what, payload := range map[string][]byte{
		"other order":    slices.Concat(typed, name),
		"set twice":      slices.Concat([]byte{0x0a, 1, 'y'}, name, typed),
		"long varint":    slices.Concat([]byte{0x8a, 0x00, 0x81, 0x00, 'x'}, typed),
		"empty sub-part": slices.Concat(name, []byte{0x12, 0}, typed),
	} {
		if got := version(t, extension(payload...)); got != want {
			t.Errorf("%s: version %s, want %s", what, got, want)
		}
		if got, want := version(t, nested(payload...)), version(t, nested(inner...)); got != want {
			t.Errorf("%s, one Any deeper: version %s, want %s", what, got, want)
		}
	}

	m := listener(t)
	before := proto.CloneOf(m)
	for range 20 { // maps have no order of their own
		if version(t, listener(t)) != version(t, m) {
			t.Fatal("one message has two versions")
		}
	}
	if !proto.Equal(m, before) {
		t.Error("Marshal changes the message")
	}
	back := &listenerv3.Listener{}
	if err := proto.Unmarshal(marshal(t, m), back); err != nil || version(t, back) != version(t, m) {
		t.Errorf("read back, the version is another: %v", err)
	}
}

// Any change gives another version: each field of the message in turn, at every
// depth.
func TestVersionOfDifferentMessages(t *testing.T) {
	original := listener(t)
	seen := map[string]string{version(t, original): "the original"}
	n := 0
	xds.Walk(listener(t), func(*xds.Node) { n++ })
	for i := range n {
		m := listener(t)
		at, visited := "", 0
		changed := xds.ResourceOf(xds.Key{}, m).Edit(func(n *xds.Node) bool {
			if visited++; visited != i+1 {
				return false
			}
			at = string(n.Path()) + " " + string(n.Name())
			return alter(n.Message.ProtoReflect())
		})
		if !changed {
			continue // nothing in it but messages
		}
		v := version(t, m)
		if other, ok := seen[v]; ok {
			t.Errorf("changed at %s it has the version of %s", at, other)
		}
		seen[v] = at
	}
	if len(seen) < 12 {
		t.Errorf("only %d changes were tried", len(seen)-1)
	}

	// A TypedStruct and what it stands for differ on the wire and in the file.
	typed := parse(t, &corev3.TypedExtensionConfig{}, `{"name": "n", "typed_config": {
	  "@type": "type.googleapis.com/envoy.config.core.v3.Node", "id": "x"}}`)
	asStruct := parse(t, &corev3.TypedExtensionConfig{}, `{"name": "n", "typed_config": {
	  "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
	  "type_url": "type.googleapis.com/envoy.config.core.v3.Node", "value": {"id": "x"}}}`)
	if version(t, typed) == version(t, asStruct) {
		t.Error("a TypedStruct has the version of what it stands for")
	}
}

// alter changes the first field of text that is set.
func alter(m protoreflect.Message) (changed bool) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() == protoreflect.StringKind && !fd.IsList() && !fd.IsMap() && fd.Name() != "type_url" {
			m.Set(fd, protoreflect.ValueOfString(v.String()+"x"))
			changed = true
		}
		return !changed
	})
	return changed
}

func TestVersion(t *testing.T) {
	a, b := &clusterv3.Cluster{Name: "a"}, &clusterv3.Cluster{Name: "b"}
	versions := map[string]bool{}
	for _, list := range [][]proto.Message{{}, {a}, {b}, {a, b}, {b, a}, {a, a}} {
		v := version(t, list...)
		if !regexp.MustCompile(`^[a-z][0-9a-f]{16}$`).MatchString(v) {
			t.Errorf("version %q: it must start with a letter", v)
		}
		if versions[v] {
			t.Errorf("%v has the version of another list", list)
		}
		versions[v] = true
	}
	// Where one resource ends and the next begins is part of it.
	if xds.Version([][]byte{[]byte("ab"), []byte("c")}) == xds.Version([][]byte{[]byte("a"), []byte("bc")}) {
		t.Error("resources run into each other")
	}
	// The version of given content must not change from build to build: it would
	// be an update of everything.
	if got, want := version(t, a, b), "v0ed144b9ae499f35"; got != want {
		t.Errorf("version %s, was %s", got, want)
	}
}
