package field_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "xdspub/xds/alltypes"
)

// TestReplacements: each field in deprecated.txt exists and is deprecated. So no line is left after an upgrade of
// the API.
func TestReplacements(t *testing.T) {
	text, err := os.ReadFile("deprecated.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	if !slices.IsSorted(lines) {
		t.Error("deprecated.txt is not sorted")
	}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Error(err)
			continue
		}
		if options, ok := d.Options().(interface{ GetDeprecated() bool }); !ok || !options.GetDeprecated() {
			t.Errorf("%s is not deprecated", name)
		}
	}
}
