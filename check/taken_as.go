package check

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/follow"
	"xdspub/xds"
)

// takenAsResources reports that the only file was read as a file of resources. It reports this only if nothing in
// the file looks like a resource.
func (t *Tree) takenAsResources(list diag.List) diag.List {
	if t.options.Input != nil || !hasOneOf(list, "unknown-document", "empty-file", codeEmptyTree.Name) || !fspath.IsFile(t.options.Path) {
		return nil
	}
	return diag.List{{
		Code: codeTakenAs.Name, Severity: codeTakenAs.Severity, Position: diag.Position{File: t.options.Path},
		Message: "the file was read as resources, not as a bootstrap: it has no bootstrap field at its top",
		Help:    "if it is a bootstrap, correct the names at its top, or use validate --root DIR, where DIR is Envoy's working directory",
	}}
}

// takenAsBootstrap reports that a file was read as a bootstrap, and the reason. It reports this only if the file is
// empty or has unknown fields at its top.
func takenAsBootstrap(path string, byRoot bool, f *follow.Result) diag.List {
	strange := slices.ContainsFunc(f.Diagnostics, func(d diag.Diagnostic) bool {
		ofBootstrap := d.File == path && (d.Resource.Type == "" || d.Resource.Type == xds.Bootstrap.URL())
		return ofBootstrap && d.Code == "unknown-field" && d.Path != "" && !strings.ContainsAny(d.Path, ".[")
	})
	if empty := f.Bootstrap != nil && f.Snapshot.Len() == 0 && proto.Size(f.Bootstrap.Message()) == 0; !empty && !strange {
		return nil
	}
	why := "because it is empty or has a bootstrap field at its top"
	if byRoot {
		why = "because of --root"
	}
	return diag.List{{
		Code: codeTakenAs.Name, Severity: codeTakenAs.Severity, Position: diag.Position{File: path},
		Message: "the file was read as a bootstrap, " + why,
		Help:    `if it holds resources, write them under resources: or give each its "@type"; xdspub validate - reads standard input as resources`,
	}}
}

func hasOneOf(list diag.List, codes ...string) bool {
	return slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return slices.Contains(codes, d.Code) })
}
