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

// named matches the names of fields that may be references. testdata/notref.txt has the fields with such names that
// are no references.
var named = regexp.MustCompile(`cluster|route_config|listener|locator|secret|sds|plugin|collection_name|resource|per_filter_config|` +
	`typed_extension_protocol_options|^name$|_names?$|^names$|^providers$|instance_name`)

// TestCatalogueIsComplete finds the fields that may be references in all messages of a configuration. Each must be
// in References or in testdata/notref.txt. So the test fails after an upgrade of the API with a new field.
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

// TestHoldersAreComplete does the same for the fields that hold messages with references, such as GrpcService and
// ConfigSource, since a rule about such a message must know each field that holds it.
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
