package envoyapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"sigs.k8s.io/yaml"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/configfields"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/xds"
	_ "xdspub/xds/alltypes"
)

// TestExtensionPointsAreComplete finds the fields that could take an extension. Each must be in ExtensionPoints, or
// in the list of other fields: Envoy never reads such a field, reads it only in the bootstrap, gives it to a
// module, or accepts extensions that depend on the matcher around it.
func TestExtensionPointsAreComplete(t *testing.T) {
	classed := make(map[protoreflect.FullName]bool)
	for _, s := range envoyapi.Latest.ExtensionPoints() {
		classed[s.Field] = true
	}
	unclassed, err := os.ReadFile("testdata/no_extension_points.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(unclassed)) {
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
	configfields.Each(func(fd protoreflect.FieldDescriptor) { checkClassed(t, fd, classed) })
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
			t.Errorf("%s may take an extension: try it on Envoy, then add it to ExtensionPoints or to testdata/no_extension_points.txt", fd.FullName())
		}
		delete(classed, fd.FullName())
	}
}

// extensionPlace is a place of an extension point in a bootstrap, from testdata/extension_points.txtar.
type extensionPlace struct {
	name       string
	point      envoyapi.ExtensionPoint
	categories []string
	// around is the bootstrap without the content of the extension point.
	around string
}

func extensionPlaces(t *testing.T) (list []extensionPlace) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/extension_points.txtar")
	if err != nil {
		t.Fatal(err)
	}
	around := make(map[string]string)
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "around/"); ok {
			around[name] = string(f.Data)
			continue
		}
		field, _, _ := strings.Cut(f.Name, "#")
		i := slices.IndexFunc(envoyapi.Latest.ExtensionPoints(), func(s envoyapi.ExtensionPoint) bool { return string(s.Field) == field })
		if i < 0 {
			t.Fatalf("%s is no extension point", field)
		}
		head, snippet, _ := strings.Cut(string(f.Data), "\n")
		place := strings.Fields(head)
		if s := envoyapi.Latest.ExtensionPoints()[i]; len(s.Also) > 0 && !slices.Equal(place[1:], append([]string{s.Category}, s.Also...)) {
			t.Errorf("%s takes %v in extension_points.txtar, and %s, %v in ExtensionPoints", f.Name, place[1:], s.Category, s.Also)
		}
		list = append(list, extensionPlace{f.Name, envoyapi.Latest.ExtensionPoints()[i], place[1:], strings.Replace(around[place[0]], "HERE", strings.TrimSpace(snippet), 1)})
	}
	return list
}

// TestExtensionPoints tries a sample of the extension points on Envoy. Each finds an extension for the types of its
// categories, although Envoy may refuse the content, and for no other type. The test tries the types of all extensions
// and the stranger. With -every, it tries all message types that Envoy holds, and so finds extensions that config_dump
// lacks.
func TestExtensionPoints(t *testing.T) {
	types := append(messageTypes(), stranger)
	tried := make(map[protoreflect.FullName]bool)
	sample := portion.Every(4, 8)
	for i, p := range extensionPlaces(t) {
		tried[p.point.Field] = true
		if i%sample != 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if p.point.ByName {
				p.checkNamed(t)
				return
			}
			want := p.fitting()
			for _, taken := range p.taken(t, types) {
				if !slices.Contains(want, taken) {
					t.Errorf("%s is taken, and is of none of %v", taken, p.categories)
				}
				want = slices.DeleteFunc(want, func(w string) bool { return w == taken })
			}
			for _, left := range want {
				t.Errorf("%s is of %v, and Envoy finds it not", left, p.categories)
			}
		})
	}
	for _, s := range envoyapi.Latest.ExtensionPoints() {
		if !tried[s.Field] {
			t.Errorf("%s: not in testdata/extension_points.txtar", s.Field)
		}
	}
}

// stranger is a type that no extension has.
const stranger = "envoy.config.core.v3.Locality"

// messageTypes returns the types of all extensions. With -every, it returns all types that Envoy holds and that are
// not nested in other messages.
func messageTypes() (list []string) {
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		name := mt.Descriptor().FullName()
		_, nested := mt.Descriptor().Parent().(protoreflect.MessageDescriptor)
		if len(envoyapi.Latest.Categories(name)) > 0 || *every && !nested && envoyapi.Latest.Holds(name) && name != stranger {
			list = append(list, string(name))
		}
		return true
	})
	slices.Sort(list)
	return list
}

// fitting returns the types of extensions in the categories of the place.
func (p extensionPlace) fitting() (list []string) {
	for _, category := range p.categories {
		for _, e := range envoyapi.Latest.Extensions(category) {
			for _, config := range []protoreflect.FullName{e.Config, e.Route} {
				if config != "" && !slices.Contains(list, string(config)) {
					list = append(list, string(config))
				}
			}
		}
	}
	return list
}

// notFound matches Envoy's message that it has no extension for an extension point. The message may be about an
// extension point inside a found extension.
var (
	notFound = regexp.MustCompile(`(?i)didn't find a registered|extension not found|formatter not found|factory not found|unknown AI filter|` +
		`failed to get certificate validator|failed to load private key provider|unable to unpack|does not support header validator`)
	inExtension = regexp.MustCompile(`for subset lb|implementation for '' with type URL: ''`)
)

// late are the extension points that Envoy reads only at a request: for an unknown type, it uses a default, or
// crashes.
var late = map[protoreflect.FullName]bool{
	"envoy.config.cluster.v3.Cluster.upstream_config":                                                                          true,
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings.BucketIdBuilder.ValueBuilder.custom_value": true,
}

// taken returns the types for which Envoy finds an extension.
func (p extensionPlace) taken(t *testing.T, types []string) (list []string) {
	t.Helper()
	said := make(map[string]string) // Envoy's reason for a refusal, by type
	switch {
	case late[p.point.Field]:
		if ok, output := envoytest.Validate(t, p.holding(stranger)); !ok {
			t.Errorf("Envoy looks at it:\n%s", output)
		}
		return p.fitting()
	case strings.HasPrefix(p.around, "static_resources:"), strings.HasPrefix(p.around, "node:"):
		p.trySideBySide(t, types, said)
	default:
		p.tryEach(t, types, said)
	}
	for _, name := range types {
		if !notFound.MatchString(said[name]) || inExtension.MatchString(said[name]) {
			list = append(list, name)
		}
	}
	return list
}

// tryEach tries the types in an extension point of the bootstrap one by one. Without -every, it tries only the
// fitting types and the stranger.
func (p extensionPlace) tryEach(t *testing.T, types []string, said map[string]string) {
	t.Helper()
	fitting := p.fitting()
	for _, name := range types {
		if !*every && name != stranger && !slices.Contains(fitting, name) {
			said[name] = "extension not found: not tried"
		} else if ok, output := envoytest.Validate(t, p.holding(name)); !ok {
			said[name] = output
		}
	}
}

// trySideBySide gives one Envoy a listener or a cluster for each type. Envoy logs the reason for each refusal.
func (p extensionPlace) trySideBySide(t *testing.T, types []string, said map[string]string) {
	t.Helper()
	log, ended := p.publish(t, types)
	if ended { // Envoy crashed because of one of the types
		if !strings.Contains(log, "Caught ") {
			t.Fatalf("Envoy ended by itself:\n%s", log)
		}
		if len(types) == 1 {
			said[types[0]] = "" // Envoy found an extension for the type
			return
		}
		p.trySideBySide(t, types[:len(types)/2], said)
		p.trySideBySide(t, types[len(types)/2:], said)
		return
	}
	for _, m := range tag.FindAllStringSubmatchIndex(log, -1) {
		rest := log[m[1]:]
		if next := tag.FindStringIndex(rest); next != nil {
			rest = rest[:next[0]]
		}
		var n int
		if _, err := fmt.Sscan(log[m[2]:m[3]], &n); err == nil && n < len(types) {
			said[types[n]] = rest
		}
	}
}

// tag matches the beginning of Envoy's message about the resource of a type.
var tag = regexp.MustCompile(`\btrial(\d+): `)

// publish gives an Envoy the resource around an extension point once for each type, and returns
// its log when it has read them.
func (p extensionPlace) publish(t *testing.T, types []string) (log string, ended bool) {
	t.Helper()
	list, service, resourceType := "listeners", "lds", xds.Listener
	if !strings.Contains(p.around, "listeners:") {
		list, service, resourceType = "clusters", "cds", xds.Cluster
	}
	const placeholder = "PLACEHOLDER"
	var b struct {
		Static map[string][]json.RawMessage `json:"static_resources"`
	}
	if err := yaml.Unmarshal(p.holding(placeholder), &b); err != nil {
		t.Fatal(err)
	}
	resource := string(b.Static[list][0])
	var resources []string
	for i, name := range types {
		if name == stranger {
			name += `", "region": "a`
		}
		named := strings.Replace(resource, `"name":"`+list[:1]+`"`, fmt.Sprintf(`"name":"trial%d","@type":%q`, i, resourceType.URL()), 1)
		resources = append(resources, strings.ReplaceAll(named, placeholder, name))
	}
	dir := t.TempDir()
	envoytest.Publish(t, filepath.Join(dir, "trial.json"), `{"resources":[`+strings.Join(resources, ",")+"]}")
	const patience = time.Minute
	trial := envoytest.Try(t, envoytest.Options{Dir: dir, Bootstrap: fmt.Appendf(nil, `node: {id: i, cluster: c}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources: {%s_config: {path_config_source: {path: ./trial.json}}}
static_resources: {clusters: [{name: c, type: STATIC, connect_timeout: 1s}]}
`, service)}, patience)
	if !trial.Live && !trial.Ended {
		t.Fatalf("neither LIVE nor ended within %v", patience)
	}
	return trial.Log, trial.Ended
}

// holding returns a bootstrap with a configuration of a type in the extension point.
func (p extensionPlace) holding(config string) []byte {
	typed := `{"@type": ` + xds.URLPrefix + config + `}`
	if config == stranger {
		typed = typed[:len(typed)-1] + ", region: a}"
	}
	return []byte(strings.NewReplacer("CONFIG", "typed_config: "+typed, "ANY", typed, "UNIQUE", "the "+config).Replace(p.around))
}

// checkNamed tries an extension point in which the name decides, with the stranger and with the first fitting
// extension.
func (p extensionPlace) checkNamed(t *testing.T) {
	t.Helper()
	if ok, output := envoytest.Validate(t, p.holding(stranger)); ok || !notFound.MatchString(output) {
		t.Errorf("of no category, accepted %v:\n%s", ok, output)
	}
	for _, e := range envoyapi.Latest.Extensions(p.categories[0]) {
		if e.Config == "" {
			continue
		}
		p.around = strings.Replace(p.around, "name: x,", "name: "+e.Name+",", 1)
		if ok, output := envoytest.Validate(t, p.holding(string(e.Config))); !ok && notFound.MatchString(output) {
			t.Errorf("%s:\n%s", e.Config, output)
		}
		return
	}
}
