package envoyapi_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/xds"
)

// TestAbsentTypes asks the binary which of the linked types it holds: Envoy refuses a bootstrap because of the
// first @type that it does not know. So each absent type takes a run of Envoy, and make test tries a sample of them.
func TestAbsentTypes(t *testing.T) {
	listed := absentTypes(t)
	if !slices.IsSorted(listed) {
		t.Error("absent-types.txt is not sorted")
	}
	linked := make(map[protoreflect.FullName]bool)
	var present, absent []protoreflect.FullName
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		name := mt.Descriptor().FullName()
		linked[name] = true
		switch {
		case name.Parent() == "google.protobuf": // every binary holds these types, whose JSON has another form
		case envoyapi.Latest.Holds(name):
			present = append(present, name)
		default:
			absent = append(absent, name)
		}
		return true
	})
	for _, name := range listed {
		switch {
		case !linked[name]:
			t.Errorf("%s is in absent-types.txt, but no linked package holds it: remove the line", name)
		case envoyapi.Latest.Holds(name):
			t.Errorf("%s is in absent-types.txt, and Holds has it", name)
		}
	}

	if ok, output := envoytest.Validate(t, holding(t, present)); !ok {
		t.Fatalf("Envoy lacks a type that is not in absent-types.txt:\n%s", output)
	}
	slices.Sort(absent)
	every := portion.Every(12, 24)
	var sample []protoreflect.FullName
	for i := 0; i < len(absent); i += every {
		sample = append(sample, absent[i])
	}
	missing := regexp.MustCompile(`could not find @type '` + regexp.QuoteMeta(xds.URLPrefix) + `([^']+)'`)
	for len(sample) > 0 {
		ok, output := envoytest.Validate(t, holding(t, sample))
		if ok {
			t.Fatalf("Envoy holds types of absent-types.txt: %v", sample)
		}
		found := missing.FindStringSubmatch(output)
		if found == nil {
			t.Fatalf("Envoy says something else of %v:\n%s", absent, output)
		}
		i := slices.Index(sample, protoreflect.FullName(found[1]))
		if i < 0 {
			t.Fatalf("Envoy lacks %s, which it was not asked for", found[1])
		}
		sample = slices.Delete(sample, i, i+1)
	}
}

func absentTypes(t *testing.T) (names []protoreflect.FullName) {
	t.Helper()
	text, err := os.ReadFile("v1.40.0/absent-types.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			names = append(names, protoreflect.FullName(name))
		}
	}
	return names
}

// holding returns a bootstrap with a message of each type in the metadata of a cluster, in which Envoy unpacks no
// Any.
func holding(t *testing.T, types []protoreflect.FullName) []byte {
	t.Helper()
	metadata := make(map[string]any)
	for _, name := range types {
		metadata[strings.ReplaceAll(string(name), ".", "-")] = map[string]any{"@type": xds.URLPrefix + string(name)}
	}
	config, err := json.Marshal(map[string]any{"static_resources": map[string]any{"clusters": []any{map[string]any{
		"name":            "c",
		"connect_timeout": "1s",
		"metadata":        map[string]any{"typed_filter_metadata": metadata},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestHoldsResourceTypes(t *testing.T) {
	for _, v := range envoyapi.Versions {
		for _, typ := range xds.Types {
			if !v.Holds(typ.Message) {
				t.Errorf("Envoy %s has no %s", v.Name, typ.Message)
			}
		}
	}
}
