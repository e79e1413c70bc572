package reference

import (
	"fmt"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

var xdstpName = &validate.Rule{
	Code: "xdstp-name",
	Doc: `A name that begins with xdstp: is no valid name, or one of another type.

Such a name is a URL: xdstp://AUTHORITY/TYPE/PATH?KEY=VALUE, with the full name of the resource's
message as its type. Envoy reads it where it asks a server: without a type it rejects the resource
that has the name ("Resource type missing"), and does not start where a resources_locator of its
bootstrap has another type ("xdstp:// type does not match"), as it rejects an assignment with a
leds_collection_name of another type, or with one that has a fragment other than #alt= and #entry=
("Unknown fragment component"). In files, and for the name of a cluster
in a route, it compares the text. gRPC clients reject a name that they can't read, or one of another
type. A name with the suffix /* is a collection, not a resource.

The order of the parameters, and which characters are percent-encoded, do not matter: two spellings
are one name, and clients get it in the canonical one. A bootstrap, and the files that it names,
are Envoy's to read: there two spellings are two names.`,
	Checks: []diag.Check{
		{Name: "collection", Summary: "The name of a resource is that of a collection."},
		{Name: "other-type", Summary: "The name belongs to another type."},
		{Name: "unreadable", Summary: "The name has no type, or can't be read."},
	},
	Wants: func(md protoreflect.MessageDescriptor) bool {
		return xds.Refers(md.FullName()) || xds.TypeOf(md.FullName()) != nil
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		if t := xds.TypeOf(n.Name()); n.Parent == nil && t == p.Resource.Type && t != xds.VirtualHost {
			checkOwnURL(p, t)
		}
		for _, use := range n.Uses() {
			switch {
			case use.Kind == xds.Local || !xdstp.Is(use.Name):
			case use.Kind == xds.Locator:
				checkLocator(p, n, use)
			default:
				checkURL(p, use.Path(), use.Name, use.Target, byStream(p, use.Path()))
			}
		}
	},
}

// checkOwnURL checks the name of the judged resource, which is of type t.
func checkOwnURL(p *validate.Pass, t *xds.Type) {
	name := p.Resource.Name
	if !xdstp.Is(name) {
		return
	}
	path := xds.Path(t.Name)
	if xdstp.IsCollection(name) {
		p.Report(validate.Finding{
			Check: "collection",
			Path:  path, Warning: true,
			Message: fmt.Sprintf("%q is the name of a collection, not of one %s", name, t.Noun),
			Help:    "end the path with the resource's own name",
		})
		return
	}
	checkURL(p, path, name, t, false)
}

// checkURL checks the name of a resource. t is its type, or nil if the type is unknown. rejected means that Envoy
// rejects the resource with the reference if it can't read the name.
func checkURL(p *validate.Pass, at xds.Path, name string, t *xds.Type, rejected bool) {
	url, err := xdstp.Parse(name)
	switch {
	case err != nil:
		message := fmt.Sprintf("%q is no xdstp name: %v", name, err)
		if rejected = rejected && (!hasType(name) || t == xds.LocalityEndpoints && !namesCollection(name)); rejected {
			message += ": " + refusal(p)
		}
		p.Report(validate.Finding{
			Check: "unreadable", Path: at, Warning: !rejected, Message: message,
			Help: "write xdstp://AUTHORITY/" + typeIn(t) + "/NAME, or a name without xdstp:",
		})
	case t != nil && url.Type != string(t.Message):
		rejected = rejected && t == xds.LocalityEndpoints
		consequence := "gRPC clients reject it"
		if rejected {
			consequence = refusal(p)
		}
		p.Report(validate.Finding{
			Check: "other-type",
			Path:  at, Warning: !rejected,
			Message: fmt.Sprintf("%q has the type %s, and one %s is named here: %s", name, url.Type, t.Noun, consequence),
			Help:    "write the type " + string(t.Message),
		})
	}
}

// hasType reports whether a name has a part that Envoy reads as the type, even if the type is wrong.
func hasType(name string) bool {
	_, path, found := strings.Cut(strings.TrimPrefix(name, xdstp.Scheme+"//"), "/")
	return found && path != "" && path[0] != '?' && path[0] != '/'
}

// namesCollection reports whether Envoy reads a name as a LEDS collection.
func namesCollection(name string) bool {
	before, fragment, found := strings.Cut(strings.TrimPrefix(name, xdstp.Scheme+"//"), "#")
	_, path, _ := strings.Cut(before, "/")
	ends := strings.IndexAny(path+"/", "/?")
	if path[:ends] != string(xds.LocalityEndpoints.Message) {
		return false
	}
	return !found || !slices.ContainsFunc(strings.Split(fragment, ","), func(directive string) bool {
		return !strings.HasPrefix(directive, "alt=") && !strings.HasPrefix(directive, "entry=")
	})
}

func typeIn(t *xds.Type) string {
	if t == nil {
		return "TYPE"
	}
	return string(t.Message)
}

// byStream reports whether Envoy sends a name to a server by gRPC. at is the path of the name.
func byStream(p *validate.Pass, at xds.Path) bool {
	all := p.Resource.Facts().Subscriptions
	i := slices.IndexFunc(all, func(s xds.Subscription) bool { return s.NamePath == at })
	if i < 0 {
		return false
	}
	switch source := all[i].Source; source.GetConfigSourceSpecifier().(type) {
	case nil, *corev3.ConfigSource_Ads, *corev3.ConfigSource_Self:
		return true
	case *corev3.ConfigSource_ApiConfigSource:
		return source.GetApiConfigSource().GetApiType() != corev3.ApiConfigSource_REST
	}
	return false
}

// checkLocator checks the type in cds_resources_locator or lds_resources_locator.
func checkLocator(p *validate.Pass, n *xds.Node, use xds.Use) {
	if _, ok := n.Message.(*bootstrapv3.Bootstrap_DynamicResources); !ok {
		return
	}
	name, _, _ := strings.Cut(use.Name, "#") // without directives
	url, err := xdstp.Parse(name)
	switch {
	case err != nil:
		p.Report(validate.Finding{
			Check: "unreadable", Path: use.Path(), Warning: true,
			Message: fmt.Sprintf("%q is no xdstp name: %v", use.Name, err), Help: "write xdstp://AUTHORITY/" + typeIn(use.Target) + "/*",
		})
	case url.Type != string(use.Target.Message):
		p.Report(validate.Finding{
			Check:   "other-type",
			Path:    use.Path(),
			Message: fmt.Sprintf("%q has the type %s: Envoy does not start", use.Name, url.Type),
			Help:    "write the type " + string(use.Target.Message),
		})
	}
}
