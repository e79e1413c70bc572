package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Import imports an Input by Dump if it is a dump, and otherwise by Static.
func Import(in load.Input, o Options) *Imported {
	if decode.HoldsDump(syntax.FormatNamed(in.Format), in.Data) {
		return Dump(in, o)
	}
	return Static(in, o)
}

// Dump imports the /config_dump?include_eds of a running Envoy: the static resources of its bootstrap, and the
// resources of its subscriptions. The source tree replaces Envoy's ADS server, and the files and servers from which
// the resources came.
//
// Envoy does not show secrets. A subscription to a secret from another source than the ADS server keeps this
// source. Any other secret is an error.
func Dump(in load.Input, o Options) *Imported {
	r, findings := newReading(in, o)
	imported := &Imported{Line: r.dump.Line, Diagnostics: findings}
	if findings.HasErrors() {
		return imported
	}
	r.read()
	others := r.decode()
	if !r.failed() {
		r.stay(others...)
		r.subscriptions()
		r.redacted()
	}
	if r.failed() {
		imported.Diagnostics = r.findings().Sort()
		return imported
	}
	r.noteKept()
	r.cleanBootstrap()
	r.finish(imported)
	return imported
}

// newReading returns the reading of a dump, and the findings of its text.
func newReading(in load.Input, o Options) (*reading, diag.List) {
	dump, findings := decode.ParseDump(in.Name, in.Data, in.Envoy)
	in.Format = "json"
	r := &reading{draft: newDraft(in, o), dump: dump, offers: make(map[xds.Key][]offer), measured: make(map[string]bool), seen: make(map[string]bool)}
	r.replaced = true
	return r, findings
}

// failed reports whether a finding forbids the import.
func (r *reading) failed() bool { return r.findings().HasErrors() }

// reading is the state of the import of a dump.
type reading struct {
	*draft
	dump *decode.Dump
	// offers are the resources of Envoy's subscriptions, by key. The import takes an offer if an imported resource
	// subscribes to it. Clusters and listeners are not offers, because the import takes all of them.
	offers map[xds.Key][]offer
	// measured are the names of the endpoint assignments whose health Envoy measures.
	measured map[string]bool
	// scopes has, for each set of scopes of Envoy's listeners, the sorted names of the scopes.
	scopes [][]string
	// whole is the bootstrap in the dump.
	whole part
	seen  map[string]bool // the sections that were read
}

// offer is a resource in a dump that a subscription may ask for.
type offer struct {
	part
	// resource is nil until the first use.
	resource *xds.Resource
	taken    bool
}

// part is a JSON value in a dump, and its path.
type part struct {
	path xds.Path
	text json.RawMessage // nil if the value is absent
}

// object returns the members of an object, or nil for an absent value. It reports a value of another type.
func (r *reading) object(p part) map[string]json.RawMessage {
	members, ok := r.dump.Members(p.text)
	if !ok && len(p.text) > 0 && string(p.text) != "null" {
		r.wrong(p, "is no object")
	}
	return members
}

// field returns a field of an object, whose name may have either spelling.
func (r *reading) field(p part, name string) part {
	members := r.object(p)
	if _, has := members[name]; !has {
		if camel := camelCase(name); members[camel] != nil {
			name = camel
		}
	}
	return part{p.path.Field(name), members[name]}
}

// elements returns the elements of a list. The list is a field of an object.
func (r *reading) elements(p part, name string) (list []part) {
	p = r.field(p, name)
	items, ok := r.dump.Elements(p.text)
	if !ok && len(p.text) > 0 && string(p.text) != "null" {
		r.wrong(p, "is no list")
	}
	for i, text := range items {
		list = append(list, part{p.path.Index(i), text})
	}
	return list
}

// word returns the value of a text field, or "".
func (r *reading) word(p part, name string) (text string) {
	_ = json.Unmarshal(r.field(p, name).text, &text) // text stays "" if the value is not text
	return text
}

func (r *reading) wrong(p part, what string) {
	r.report(codeDump, p, fmt.Sprintf("%s %s: this is not what /config_dump of an Envoy prints", p.path, what), dumpHelp)
}

const dumpHelp = "take all of it: curl 'http://127.0.0.1:9901/config_dump?include_eds', or give import the address"

// report reports a finding about a part.
func (r *reading) report(code diag.Code, p part, message, help string) {
	r.found.Add(r.dump.Finding(code, p.path, false, message, help))
}

// adminPackage is the beginning of the type URLs of sections.
const adminPackage = xds.URLPrefix + "envoy.admin.v3."

// sections maps the name of a section's type to the function that reads it.
var sections = map[string]func(*reading, part){
	"BootstrapConfigDump":    (*reading).readBootstrap,
	"ClustersConfigDump":     (*reading).readClusters,
	"ListenersConfigDump":    (*reading).readListeners,
	"RoutesConfigDump":       (*reading).readRoutes,
	"ScopedRoutesConfigDump": (*reading).readScopes,
	"SecretsConfigDump":      (*reading).readSecrets,
	"EcdsConfigDump":         (*reading).readExtensions,
	"EndpointsConfigDump":    (*reading).readEndpoints,
}

// read reads all sections.
func (r *reading) read() {
	for _, s := range r.elements(part{"", r.dump.Text()}, "configs") {
		if !r.section(s) {
			return
		}
	}
	for _, needed := range []string{"BootstrapConfigDump", "ClustersConfigDump", "ListenersConfigDump"} {
		if !r.seen[needed] && !r.failed() {
			r.report(codeDump, part{path: "configs"}, "the dump is not whole: it has no "+needed, dumpHelp)
		}
	}
	r.wantsEndpoints()
}

// wantsEndpoints reports a dump without endpoints, if a cluster subscribes to endpoints.
func (r *reading) wantsEndpoints() {
	for _, i := range r.items {
		for _, s := range i.Facts().Subscriptions {
			if s.Target != xds.Endpoints || r.seen["EndpointsConfigDump"] {
				continue
			}
			f := i.Diagnostic(codeDump.Name, s.NamePath, fmt.Sprintf("the dump is not whole: it has no endpoints, and %s asks for some", i.Key))
			f.Help = dumpHelp
			r.found.Add(f)
			return
		}
	}
}

// section reads a section. It returns false if the dump can't be imported.
func (r *reading) section(s part) bool {
	url := r.word(s, "@type")
	name, isAdmin := strings.CutPrefix(url, adminPackage)
	read := sections[name]
	message, help := "", dumpHelp
	switch {
	case url == "" || isAdmin && strings.Contains(name, "."):
		message = "the dump is not whole: it was made with resource= or mask="
	case strings.HasPrefix(url, xds.URLPrefix+"envoy.admin.v2alpha."):
		message, help = "the dump is of an Envoy with the v2 API, which is one before 1.18", "import the dump of a later one"
	case r.seen[name] && name == "BootstrapConfigDump":
		message, help = "there is a second bootstrap: this is more than one dump", "import one dump at a time"
	case read == nil:
		r.warnAt(s, fmt.Sprintf("a section of type %q is not imported: it is not known", diag.Clip(url, diag.MaxWord)), "")
	default:
		r.seen[name] = true
		read(r, s)
	}
	if message != "" {
		r.report(codeDump, s, message, help)
	}
	return message == "" && r.found.HasRoom(diag.Error)
}

// warnAt reports a change of a part by the import.
func (r *reading) warnAt(p part, message, help string) {
	f := r.dump.Finding(codeChange, p.path, false, message, help)
	f.Severity = codeChange.Severity
	r.found.Add(f)
}

// resource decodes a part as a resource of type t. It reports a part of another type, and returns nil.
func (r *reading) resource(p part, t *xds.Type) *xds.Resource {
	found, findings := r.dump.Resource(p.path, p.text)
	r.found.Add(findings...)
	if found != nil && found.Type != t {
		r.wrong(p, "is no "+t.Noun)
		return nil
	}
	return found
}

func (r *reading) readBootstrap(s part) {
	r.whole = r.field(s, "bootstrap")
	if r.word(s, "last_updated") == "" || r.whole.text == nil {
		r.report(codeDump, s, "the dump is not whole: it was made with mask=", dumpHelp)
		return
	}
	resources, findings := r.dump.Bootstrap(r.whole.path, r.whole.text)
	r.found.Add(findings...)
	r.bootstrap = resources[0]
	for _, static := range resources[1:] {
		r.items = append(r.items, &item{Resource: static})
		r.measure(static)
	}
}

func (r *reading) readClusters(s part) {
	runs := make(map[string]bool)
	for _, list := range []string{"dynamic_active_clusters", "dynamic_warming_clusters"} {
		for _, entry := range r.elements(s, list) {
			r.refused(entry, xds.Cluster, r.word(entry, "name"))
			cluster := r.field(entry, "cluster")
			name := r.word(cluster, "name")
			switch {
			case cluster.text == nil:
			case runs[name]:
				r.warming(entry, xds.Cluster, name)
			default:
				runs[name] = true
				r.add(cluster, xds.Cluster)
			}
		}
	}
}

func (r *reading) readListeners(s part) {
	for _, entry := range r.elements(s, "dynamic_listeners") {
		name := r.word(entry, "name")
		active, warms := r.field(entry, "active_state"), r.field(entry, "warming_state")
		r.refused(entry, xds.Listener, name)
		switch drains := r.field(entry, "draining_state"); {
		case active.text != nil:
			if warms.text != nil {
				r.warming(warms, xds.Listener, name)
			}
			r.add(r.field(active, "listener"), xds.Listener)
		case warms.text != nil:
			r.add(r.field(warms, "listener"), xds.Listener)
		case drains.text != nil:
			r.warnAt(drains, fmt.Sprintf("listener %q is not imported: Envoy has removed it, and it drains", name), "")
		}
	}
}

// refused reports that Envoy rejected the last version of a resource.
func (r *reading) refused(entry part, t *xds.Type, name string) {
	state := r.field(entry, "error_state")
	if state.text == nil || name == "" { // Envoy lists each refused listener twice, once without a name
		return
	}
	if details := r.field(state, "details"); details.text != nil {
		state = details
	}
	r.warnAt(state, fmt.Sprintf("a version of %s %q is not imported: Envoy has refused it", t.Noun, name), "error_state, and the log of Envoy, say why")
}

// warming reports a newer version that is still warming, and is not imported.
func (r *reading) warming(p part, t *xds.Type, name string) {
	r.warnAt(p, fmt.Sprintf("a newer version of %s %q is not imported: it warms, and another one runs", t.Noun, name), "make another dump once Envoy runs it")
}

// add adds a cluster or a listener of Envoy to the items.
func (r *reading) add(p part, t *xds.Type) {
	if found := r.resource(p, t); found != nil {
		r.items = append(r.items, &item{Resource: found, source: p})
		r.measure(found)
	}
}

// decode decodes the offers that may name clusters, and returns their resources.
func (r *reading) decode() (list []*xds.Resource) {
	for _, k := range slices.SortedFunc(maps.Keys(r.offers), compare) {
		if k.Type == xds.Secret || k.Type == xds.Endpoints {
			continue
		}
		for n := range r.offers[k] {
			o := &r.offers[k][n]
			if o.resource = r.resource(o.part, k.Type); o.resource != nil {
				list = append(list, o.resource)
			}
		}
	}
	return list
}

// compare compares keys by type and name.
func compare(a, b xds.Key) int {
	return cmp.Or(slices.Index(xds.Types, a.Type)-slices.Index(xds.Types, b.Type), strings.Compare(a.Name, b.Name))
}

// offer adds a resource to the offers.
func (r *reading) offer(p part, t *xds.Type) {
	if p.text == nil {
		return
	}
	k := xds.Key{Type: t, Name: r.word(p, string(t.Name))}
	for _, other := range r.offers[k] {
		if string(other.text) == string(p.text) {
			return
		}
	}
	r.offers[k] = append(r.offers[k], offer{part: p})
}

func (r *reading) readRoutes(s part) {
	for _, entry := range r.elements(s, "dynamic_route_configs") {
		routes := r.field(entry, "route_config")
		r.refused(entry, xds.RouteConfiguration, r.word(routes, "name"))
		// Sections of this type also have routes of other protocols.
		if url := r.word(routes, "@type"); url != "" && url != xds.RouteConfiguration.URL() {
			r.warnAt(routes, fmt.Sprintf("a %s is not imported: what asks for it still asks whom it asked", xds.NameInURL(url)), "")
			continue
		}
		r.offer(routes, xds.RouteConfiguration)
	}
}

func (r *reading) readScopes(s part) {
	for _, entry := range r.elements(s, "dynamic_scoped_route_configs") {
		set := make(map[string]bool)
		for _, scope := range r.elements(entry, "scoped_route_configs") {
			set[r.word(scope, "name")] = true
			r.offer(scope, xds.ScopedRoutes)
		}
		r.scopes = append(r.scopes, slices.Sorted(maps.Keys(set)))
	}
}

func (r *reading) readSecrets(s part) {
	active := make(map[string]bool)
	for _, list := range []string{"dynamic_active_secrets", "dynamic_warming_secrets"} {
		for _, entry := range r.elements(s, list) {
			name := r.word(entry, "name")
			r.refused(entry, xds.Secret, name)
			if list == "dynamic_active_secrets" {
				active[name] = true
			} else if active[name] || r.word(entry, "version_info") == "uninitialized" {
				continue
			}
			r.offer(r.field(entry, "secret"), xds.Secret)
		}
	}
}

func (r *reading) readExtensions(s part) {
	for _, entry := range r.elements(s, "ecds_filters") {
		r.refused(entry, xds.ExtensionConfig, r.word(r.field(entry, "ecds_filter"), "name"))
		r.offer(r.field(entry, "ecds_filter"), xds.ExtensionConfig)
	}
}

func (r *reading) readEndpoints(s part) {
	for _, list := range []string{"static_endpoint_configs", "dynamic_endpoint_configs"} {
		for _, entry := range r.elements(s, list) {
			r.offer(r.field(entry, "endpoint_config"), xds.Endpoints)
		}
	}
}
