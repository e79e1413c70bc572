package importer

import "xdspub/diag"

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeChange, codeStatic}

var (
	codeChange = diag.Code{Name: "import-change", Severity: diag.Warning, Doc: `An import can't take something over as it is.

xdspub import says by this what does not become what it was: a path that has to be absolute, a
listener that needs a name, comments that a file can't have, and resources that Envoy gets from
elsewhere.`}

	codeStatic = diag.Code{Name: "import-static", Severity: diag.Info, Doc: `A resource stays in the static resources of the bootstrap.

xdspub import leaves there what Envoy has to have before it gets any resources: clusters that the
bootstrap itself names, those of management servers, the secrets and clusters that these clusters
name, and an api_listener. Give the bootstrap to validate, render, watch and serve by --bootstrap,
so that they know these names.`}
)
