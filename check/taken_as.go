package check

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/follow"
	"xdspub/internal/fspath"
	"xdspub/load"
	"xdspub/xds"
)

// takenAsResources says that the one file at Path was read as a file of resources,
// where nothing in it looks like one.
func (t *Tree) takenAsResources(list diag.List) diag.List {
	if t.options.Input != nil || !hasOneOf(list, "unknown-document", "empty-file", codeEmptyTree.Name) || !fspath.IsFile(t.options.Path) {
		return nil
	}
	return diag.List{{
		Code: codeTakenAs.Name, Severity: codeTakenAs.Severity, Position: diag.Position{File: t.options.Path},
		Message: "the file was taken as a file of resources, not as a bootstrap: no field of a bootstrap stands at its top",
		Help:    "where it is a bootstrap, correct the names at its top; xdspub validate --root DIR takes any file as one, with DIR as Envoy's working directory",
	}}
}

// takenAsBootstrap says that a file was read as a bootstrap, where it holds nothing or
// has another name at its top.
func takenAsBootstrap(path string, f *follow.Result) diag.List {
	strange := slices.ContainsFunc(f.Diagnostics, func(d diag.Diagnostic) bool {
		ofBootstrap := d.File == path && (d.Resource.Type == "" || d.Resource.Type == xds.Bootstrap.URL())
		return ofBootstrap && d.Code == "unknown-field" && d.Path != "" && !strings.ContainsAny(d.Path, ".[")
	})
	if empty := f.Bootstrap != nil && f.Snapshot.Len() == 0 && proto.Size(f.Bootstrap.Message()) == 0; !empty && !strange {
		return nil
	}
	why := "as --root says"
	if load.HoldsBootstrap(path) {
		why = "for a field of one stands at its top, or nothing at all"
	}
	return diag.List{{
		Code: codeTakenAs.Name, Severity: codeTakenAs.Severity, Position: diag.Position{File: path},
		Message: "the file was taken as a bootstrap, " + why,
		Help:    `where it holds resources, write them under resources: or give each its "@type"; xdspub validate - takes what it reads as a file of resources`,
	}}
}

func hasOneOf(list diag.List, codes ...string) bool {
	return slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return slices.Contains(codes, d.Code) })
}
