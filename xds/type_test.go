package xds_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/xds"
)

func TestTypes(t *testing.T) {
	for _, typ := range xds.Types {
		t.Run(typ.API, func(t *testing.T) {
			mt, err := protoregistry.GlobalTypes.FindMessageByURL(typ.URL())
			if err != nil {
				t.Fatal(err)
			}
			if fd := mt.Descriptor().Fields().ByName(typ.Name); typ.Name == "" && typ.Asked == xds.InGroups {
				// the wrapper has the name
			} else if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
				t.Errorf("%s.%s is no text", typ.Message, typ.Name)
			}
			if got := xds.TypeOf(typ.Message); got != typ {
				t.Errorf("TypeOf(%s) = %v", typ.Message, got)
			}
			if got := xds.TypeOfURL(typ.URL()); got != typ {
				t.Errorf("TypeOfURL(%s) = %v", typ.URL(), got)
			}
			if typ.String() != typ.API || typ.Noun == "" {
				t.Errorf("%q, %q", typ, typ.Noun)
			}
			if n := len(slices.DeleteFunc(slices.Clone(xds.Types), func(other *xds.Type) bool { return other.API != typ.API })); n != 1 {
				t.Errorf("%d rows are called %s", n, typ.API)
			}
		})
	}
	for _, name := range []protoreflect.FullName{"", "envoy.config.core.v3.Node", "envoy.api.v2.Cluster"} {
		if got := xds.TypeOf(name); got != nil {
			t.Errorf("TypeOf(%q) = %v", name, got)
		}
	}
	for _, url := range []string{"", xds.URLPrefix, string(xds.Cluster.Message), "example.com/" + string(xds.Cluster.Message)} {
		if got := xds.TypeOfURL(url); got != nil {
			t.Errorf("TypeOfURL(%q) = %v", url, got)
		}
	}
}

// What is named stands before what names it, wherever the catalogue knows a
// reference from one resource type to another.
func TestTypesOrder(t *testing.T) {
	for _, ref := range xds.References {
		from := xds.TypeOf(ref.Field.Parent())
		if from == nil || ref.Target == nil {
			continue
		}
		if slices.Index(xds.Types, ref.Target) > slices.Index(xds.Types, from) {
			t.Errorf("%s names a %s, which stands later", ref.Field, ref.Target)
		}
	}
}
