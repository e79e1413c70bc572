package xds_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/internal/envoytest"
	"xdspub/xds"
)

// TestExtensions asks the binary which extensions it holds.
func TestExtensions(t *testing.T) {
	e := envoytest.Start(t, envoytest.Options{Bootstrap: []byte(`admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}`)})
	held := make(map[string]bool)
	var dump struct {
		Configs []struct {
			Bootstrap struct {
				Node struct {
					Extensions []struct {
						Category, Name string
						TypeURLs       []string `json:"type_urls"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(e.Admin(t, "/config_dump?mask=bootstrap")), &dump); err != nil {
		t.Fatal(err)
	}
	for _, extension := range dump.Configs[0].Bootstrap.Node.Extensions {
		category, name := extension.Category, extension.Name
		held[category+" "+name] = true
		listed, ok := xds.ExtensionNamed(category, name)
		switch {
		case !ok:
			t.Errorf("%s of %s is not in extensions.txt", name, category)
		case !slices.Equal(sorted(extension.TypeURLs), sorted(configTypes(listed))):
			t.Errorf("%s of %s has the types %v, and in extensions.txt %v", name, category, extension.TypeURLs, configTypes(listed))
		}
	}
	for category := range categories(held) {
		for _, listed := range xds.Extensions(category) {
			if !held[category+" "+listed.Name] {
				t.Errorf("Envoy holds no %s of %s", listed.Name, category)
			}
		}
	}
	if len(held) < 500 {
		t.Errorf("only %d extensions: does config_dump look different now?", len(held))
	}
}

func configTypes(e xds.Extension) (types []string) {
	for _, name := range []protoreflect.FullName{e.Config, e.Route} {
		if name != "" {
			types = append(types, string(name))
		}
	}
	return types
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func categories(held map[string]bool) map[string]bool {
	set := make(map[string]bool)
	for key := range held {
		category, _, _ := strings.Cut(key, " ")
		set[category] = true
	}
	return set
}

// TestSlotsAreComplete finds the fields that could take an extension. Each is one,
// in Slots, or was looked at and is none: Envoy never reads it, reads it only in
// the bootstrap, hands it to a module, or what fits depends on the matcher around.
func TestSlotsAreComplete(t *testing.T) {
	classed := make(map[protoreflect.FullName]bool)
	for _, s := range xds.Slots {
		classed[s.Field] = true
	}
	for _, name := range lines(t, "testdata/notslot.txt") {
		if classed[protoreflect.FullName(name)] {
			t.Errorf("%s is classed twice", name)
		}
		classed[protoreflect.FullName(name)] = true
	}
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if !strings.HasPrefix(string(mt.Descriptor().FullName()), "xds.type.matcher.") {
			return true
		}
		for i := range mt.Descriptor().Fields().Len() {
			checkClassed(t, mt.Descriptor().Fields().Get(i), classed)
		}
		return true
	})
	eachConfigField(func(fd protoreflect.FieldDescriptor) { checkClassed(t, fd, classed) })
	for name := range classed {
		t.Errorf("%s is classed, but the API has no such field", name)
	}
}

func checkClassed(t *testing.T, fd protoreflect.FieldDescriptor, classed map[protoreflect.FullName]bool) {
	t.Helper()
	value := fd
	if fd.IsMap() {
		value = fd.MapValue()
	}
	if value.Message() == nil {
		return
	}
	switch value.Message().FullName() {
	case "google.protobuf.Any", "envoy.config.core.v3.TypedExtensionConfig", "xds.core.v3.TypedExtensionConfig", "envoy.config.core.v3.TransportSocket":
		if !classed[fd.FullName()] {
			t.Errorf("%s may take an extension: try it on Envoy, then add it to Slots or to testdata/notslot.txt", fd.FullName())
		}
		delete(classed, fd.FullName())
	}
}

// TestSlots tries each slot on Envoy: it refuses a type of another category for
// that reason, and takes, or refuses for another, one that fits.
func TestSlots(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/slots.txtar")
	if err != nil {
		t.Fatal(err)
	}
	around, tried := make(map[string]string), make(map[protoreflect.FullName]bool)
	missing := regexp.MustCompile(`(?i)didn't find a registered|extension not found|formatter not found|factory not found|unknown AI filter|` +
		`failed to get certificate validator|failed to load private key provider|unable to unpack|does not support header validator`)
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "around/"); ok {
			around[name] = string(f.Data)
			continue
		}
		field, _, _ := strings.Cut(f.Name, "#")
		i := slices.IndexFunc(xds.Slots, func(s xds.Slot) bool { return string(s.Field) == field })
		if i < 0 {
			t.Errorf("%s is no slot", field)
			continue
		}
		slot := xds.Slots[i]
		tried[slot.Field] = true
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			head, snippet, _ := strings.Cut(string(f.Data), "\n")
			place, category, _ := strings.Cut(head, " ")
			bootstrap := strings.Replace(around[place], "HERE", strings.TrimSpace(snippet), 1)
			if ok, output := envoytest.Validate(t, holdingConfig(bootstrap, "envoy.config.core.v3.Locality, region: a")); ok != accepted[slot.Field] || !ok && !missing.MatchString(output) {
				t.Errorf("of no category, accepted %v:\n%s", ok, output)
			}
			for _, e := range xds.Extensions(category) {
				if e.Config == "" {
					continue
				}
				if slot.ByName {
					bootstrap = strings.Replace(bootstrap, "name: x,", "name: "+e.Name+",", 1)
				}
				if ok, output := envoytest.Validate(t, holdingConfig(bootstrap, string(e.Config))); !ok && missing.MatchString(output) {
					t.Errorf("%s:\n%s", e.Config, output)
				}
				break
			}
		})
	}
	for _, s := range xds.Slots {
		if !tried[s.Field] {
			t.Errorf("%s: not in testdata/slots.txtar", s.Field)
		}
	}
}

// accepted are the slots that Envoy looks at for a request only: it goes on with a
// default, or ends.
var accepted = map[protoreflect.FullName]bool{
	"envoy.config.cluster.v3.Cluster.upstream_config":                                                                          true,
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings.BucketIdBuilder.ValueBuilder.custom_value": true,
}

// holdingConfig puts a message, its type and the rest of it, into a slot.
func holdingConfig(bootstrap, config string) []byte {
	typed := `{"@type": ` + xds.URLPrefix + config + `}`
	return []byte(strings.NewReplacer("CONFIG", "typed_config: "+typed, "ANY", typed).Replace(bootstrap))
}
