package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// foreign describes a document that belongs to another program.
type foreign struct {
	what string // as "a Compose file"
	help string // the remedy; empty for "move the file away"
	// path is the path of the finding; empty for the document.
	path xds.Path
	key  bool
}

// foreignKeys recognizes documents of other programs by their top names; all names must be present.
var foreignKeys = []struct {
	keys []string
	what string
}{
	{[]string{"openapi", "paths"}, "an OpenAPI document"},
	{[]string{"swagger", "paths"}, "an OpenAPI document"},
	{[]string{"scrape_configs"}, "a configuration of Prometheus"},
	{[]string{"receivers", "exporters"}, "a configuration of the OpenTelemetry Collector"},
	{[]string{"domain", "descriptors"}, "a configuration of Envoy's rate limit service"},
	{[]string{"entryPoints"}, "a configuration of Traefik"},
	{[]string{"xds_servers"}, "a bootstrap of gRPC clients"},
	{[]string{"jobs", "on"}, "a workflow of GitHub"},
	{[]string{"jobs", "true"}, "a workflow of GitHub"}, // what YAML makes of on:
	{[]string{"stages"}, "a pipeline of GitLab"},
	{[]string{"version", "scripts"}, "a package.json"},
	{[]string{"version", "dependencies"}, "a package file of another language"},
	{[]string{"compilerOptions"}, "a tsconfig.json"},
	{[]string{"terraform_version"}, "the state of Terraform"},
	{[]string{"repos"}, "a configuration of pre-commit"},
	{[]string{"version", "plugins"}, "a configuration of buf or of another tool"},
	{[]string{"404"}, "what a download of a missing file leaves"},
	{[]string{"$schema"}, "a document with a schema of its own"},
}

// objectHelp has the remedy for objects of Kubernetes, by the group of their API.
var objectHelp = []struct{ group, of, help string }{
	{"gateway.networking.k8s.io", "the Gateway API", "a controller, such as Envoy Gateway, turns it into Envoy's configuration"},
	{"gateway.envoyproxy.io", "Envoy Gateway", "Envoy Gateway turns it into Envoy's configuration: egctl x translate shows that"},
	{"networking.istio.io", "Istio", "istiod turns it into Envoy's configuration"},
	{"projectcontour.io", "Contour", "Contour turns it into Envoy's configuration"},
	{"getambassador.io", "Emissary", "Emissary turns it into Envoy's configuration"},
	{"cilium.io", "Cilium", "write the list under spec.resources into its own file"},
	{"kustomize.config.k8s.io", "Kustomize", "use the output of kustomize build"},
}

// foreignDocument returns the program of an object, or nil if the object may be Envoy's, or if the program is
// unknown.
func (v value) foreignDocument(members map[string]json.RawMessage) *foreign {
	text := func(name string) string { return syntax.Unquote(jsontext.Value(members[name])) }
	base := strings.ToLower(filepath.Base(v.doc.source.Name))
	switch {
	case len(members) == 0:
		return nil
	case text("apiVersion") != "" && has(members, "kind"):
		return v.kubernetes(text("apiVersion"), text("kind"), members)
	case base == "kustomization.yaml" || base == "kustomization.yml":
		return &foreign{what: "a kustomization", help: "its resources are names of files; " + notOurs}
	case text("apiVersion") != "" && has(members, "version"), base == "chart.yaml":
		return &foreign{what: "the Chart.yaml of a Helm chart", help: "render the chart first (helm template …); " + notOurs}
	case valuesFile.MatchString(base):
		return &foreign{what: "a file of values for a Helm chart", help: "render the chart first (helm template …); " + notOurs}
	case isCompose(members):
		return &foreign{what: "a Compose file"}
	case base == "xdspub.yml" || base == "xdspub.json":
		return &foreign{what: "a settings file of xdspub under a name that is not read", help: "rename it to xdspub.yaml, at the root of the source tree"}
	case strings.Contains(string(members["configs"]), "envoy.admin.v3."):
		return &foreign{what: "the output of an Envoy's /config_dump", path: "configs", key: true,
			help: "it has each resource in the form that Envoy keeps it in, with its state: xdspub import makes a source tree of it, as JSON"}
	case has(members, "cluster_manager") && has(members, "listeners"):
		return &foreign{what: "a bootstrap of the v1 API, which Envoy " +
			"dropped in 2018", help: "write it again for v3, with the resources under static_resources"}
	case slices.ContainsFunc(staticResources, func(s staticList) bool { return has(members, s.name) }) && !isBootstrap(members):
		return &foreign{what: "static resources without " +
			"static_resources: around them", help: "put static_resources: in front, and indent the " +
			"lists below it", key: true, path: firstOf(members, staticResources)}
	case text("http") == "" && has(members, "http") && strings.Contains(string(members["http"]), `"routers"`):
		return &foreign{what: "a configuration of Traefik"}
	}
	for _, f := range foreignKeys {
		if !slices.ContainsFunc(f.keys, func(key string) bool { return !has(members, key) }) {
			return &foreign{what: f.what}
		}
	}
	return nil
}

var valuesFile = regexp.MustCompile(`^values([._-].*)?\.ya?ml$`)

func firstOf(members map[string]json.RawMessage, lists []staticList) xds.Path {
	for _, s := range lists {
		if has(members, s.name) {
			return xds.Path("").Field(s.name)
		}
	}
	return ""
}

// isCompose reports whether an object has services with an image or a build.
func isCompose(members map[string]json.RawMessage) bool {
	var services map[string]map[string]json.RawMessage
	if json.Unmarshal(members["services"], &services) != nil {
		return false
	}
	for _, s := range services {
		if has(s, "image") || has(s, "build") {
			return true
		}
	}
	return false
}

// kubernetes says what an object of Kubernetes is for.
func (v value) kubernetes(api, kind string, members map[string]json.RawMessage) *foreign {
	for _, o := range objectHelp {
		if strings.HasPrefix(api, o.group+"/") {
			return &foreign{what: fmt.Sprintf("an object of %s (%s)", o.of, syntax.Shorten(kind)), help: o.help + "; " + notOurs}
		}
	}
	f := &foreign{what: fmt.Sprintf("an object of Kubernetes (%s)", syntax.Shorten(kind))}
	var data map[string]string
	if kind != "ConfigMap" || json.Unmarshal(members["data"], &data) != nil {
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if envoyText.MatchString(data[name]) {
			return &foreign{what: f.what + fmt.Sprintf(" with a file of Envoy's in it, %q", syntax.Shorten(name)), path: xds.Path("data").Key(name), key: true,
				help: fmt.Sprintf("write that text into its own file: yq '.data[%q]' %s", syntax.Shorten(name), filepath.Base(v.doc.source.Name))}
		}
	}
	return f
}

// notXDS is the finding about a document that belongs to another program.
func (v value) notXDS(f foreign) diag.Diagnostic {
	help := f.help
	switch {
	case help == "":
		help = v.doc.source.Removal()
	case v.doc.source.byEnvoy:
		help = strings.TrimSuffix(help, "; "+notOurs)
	}
	return v.findingIn(f.path, f.key, syntax.CodeUnknownDocument, "the document is "+f.what, help)
}

// typeOf returns the resource type that has all fields of an object without @type; nil if no type, or several
// types, have them.
func typeOf(members map[string]json.RawMessage) (found *xds.Type) {
	for _, t := range xds.Types {
		mt, err := (resolver{}).FindMessageByName(t.Message)
		if err != nil || len(members) == 0 || len(members) == 1 && has(members, "name") {
			continue
		}
		if all := hasAll(mt.Descriptor(), members); all && found != nil {
			return nil
		} else if all {
			found = t
		}
	}
	return found
}

func hasAll(md protoreflect.MessageDescriptor, members map[string]json.RawMessage) bool {
	for name := range members {
		if fieldNamed(md, name) == nil {
			return false
		}
	}
	return true
}

// typeMissing says which type a resource without @type is likely of.
func typeMissing(members map[string]json.RawMessage) (help string, ok bool) {
	t := typeOf(members)
	if t == nil {
		return `write the type, as in "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster`, false
	}
	return fmt.Sprintf(`it has the fields of a %s: write "@type": %s`, t.Message.Name(), t.URL()), true
}

// Removal implements Reader.
func (s *Source) Removal() string {
	switch {
	case s.isBootstrap:
		return "give the bootstrap of an Envoy here"
	case s.byEnvoy:
		return responseHelp
	}
	return notOurs
}

const notOurs = "move it out of the source tree, or list it under ignore: in xdspub.yaml"
