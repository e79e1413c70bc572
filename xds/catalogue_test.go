package xds_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/tools/configfields"
	"xdspub/xds"
	_ "xdspub/xds/alltypes"
)

// named is what the fields are called through which one resource names another.
// Many others are called so too: they stand in testdata/notref.txt.
var named = regexp.MustCompile(`cluster|route_config|listener|locator|secret|sds|plugin|collection_name|resource|per_filter_config|` +
	`typed_extension_protocol_options|^name$|_names?$|^names$|^providers$|instance_name`)

// TestCatalogueIsComplete finds the fields that could be references in all
// messages that a resource can hold. Each is one, in References, or was looked
// at and is none. So an upgrade of the API that brings a new field fails here.
func TestCatalogueIsComplete(t *testing.T) {
	classed := make(map[protoreflect.FullName]string)
	class := func(name protoreflect.FullName, as string) {
		if other, ok := classed[name]; ok {
			t.Errorf("%s is classed as %s and as %s", name, other, as)
		}
		classed[name] = as
	}
	for _, ref := range xds.References {
		class(ref.Field, "a reference")
	}
	for _, name := range lines(t, "testdata/notref.txt") {
		class(protoreflect.FullName(name), "none")
	}
	found := make(map[protoreflect.FullName]bool)
	configfields.Each(func(fd protoreflect.FieldDescriptor) {
		text := fd.Kind() == protoreflect.StringKind || fd.IsMap() && fd.MapKey().Kind() == protoreflect.StringKind
		if !text || !named.MatchString(string(fd.Name())) {
			return
		}
		found[fd.FullName()] = true
		if classed[fd.FullName()] == "" {
			t.Errorf("%s may name another resource: read its comment, then add it to References or to testdata/notref.txt", fd.FullName())
		}
	})
	for name, as := range classed {
		if !found[name] {
			t.Errorf("%s is classed as %s, but the API has no such field", name, as)
		}
	}
}

// TestHoldersAreComplete does the same for the messages that carry references,
// such as GrpcService and ConfigSource, and the fields that hold them: what a
// rule knows of ConfigSource it must know of each place where one stands.
func TestHoldersAreComplete(t *testing.T) {
	carriers := make(map[string]bool)
	gone := make(map[string]bool)
	for _, line := range lines(t, "testdata/holders.txt") {
		_, carrier, _ := strings.Cut(line, " -> ")
		carriers[carrier], gone[line] = true, true
	}
	configfields.Each(func(fd protoreflect.FieldDescriptor) {
		value := fd
		if fd.IsMap() {
			value = fd.MapValue()
		}
		if value.Message() == nil || !carriers[string(value.Message().FullName())] {
			return
		}
		line := string(fd.FullName()) + " -> " + string(value.Message().FullName())
		if !gone[line] {
			t.Errorf("new: %s", line)
		}
		delete(gone, line)
	})
	for line := range gone {
		t.Errorf("gone: %s", line)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
