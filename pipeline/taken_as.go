package pipeline

import (
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/load"
	"xdspub/xds"
)

var codeTakenAs = diag.Code{Name: "taken-as", Severity: diag.Info, Doc: `A path that is one file was taken as a bootstrap or as a file of resources, and may be the other.

validate follows the bootstrap of an Envoy and reads any other file as a part of a source
tree. It tells them apart by the names at the top of the file: a bootstrap has one of its
fields there, a file of resources an @type, resources or a list. A name that is misspelt
makes the one look like the other.`}

// takenAsResources says that the one file that Source is was read as a file of resources,
// where nothing in it looks like one.
func (p *Pipeline) takenAsResources(list diag.List) diag.List {
	if p.options.Input != nil || !hasOneOf(list, "unknown-document", "empty-file", codeEmptyTree.Name) || !isFile(p.options.Source) {
		return nil
	}
	return diag.List{{
		Code: codeTakenAs.Name, Severity: codeTakenAs.Severity, Position: diag.Position{File: p.options.Source},
		Message: "the file was taken as a file of resources, not as a bootstrap: no field of a bootstrap stands at its top",
		Help:    "where it is a bootstrap, correct the names at its top; xdspub validate --root DIR takes any file as one, with DIR as Envoy's working directory",
	}}
}

// takenAsBootstrap says that a file was read as a bootstrap, where it holds nothing or
// has another name at its top.
func (p *Pipeline) takenAsBootstrap(b *xds.Resource, static int, list diag.List) diag.List {
	strange := slices.ContainsFunc(list, func(d diag.Diagnostic) bool {
		ofBootstrap := d.File == p.options.Source && (d.Resource.Type == "" || d.Resource.Type == xds.Bootstrap.URL())
		return ofBootstrap && d.Code == "unknown-field" && d.Path != "" && !strings.ContainsAny(d.Path, ".[")
	})
	if empty := b != nil && static == 0 && proto.Size(b.Message) == 0; !empty && !strange {
		return nil
	}
	why := "as --root says"
	if load.HoldsBootstrap(p.options.Source) {
		why = "for a field of one stands at its top, or nothing at all"
	}
	return diag.List{{
		Code: codeTakenAs.Name, Severity: codeTakenAs.Severity, Position: diag.Position{File: p.options.Source},
		Message: "the file was taken as a bootstrap, " + why,
		Help:    `where it holds resources, write them under resources: or give each its "@type"; xdspub validate - takes what it reads as a file of resources`,
	}}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func hasOneOf(list diag.List, codes ...string) bool {
	return slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return slices.Contains(codes, d.Code) })
}
