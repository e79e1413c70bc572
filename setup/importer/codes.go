package importer

import "xdspub/diag"

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeChange, codeDump, codeRedacted, codeStatic}

var (
	codeChange = diag.Code{Name: "import-change", Severity: diag.Warning, Doc: `An import changes or drops a part of the configuration.

xdspub import reports each difference from the input: a path that must be absolute, a listener that
needs a name, comments that a file can't hold, and resources that Envoy gets from another source, or
that a control plane does not have.`}

	codeDump = diag.Code{Name: "import-dump", Doc: `A dump is not that of a whole Envoy.

xdspub import takes what /config_dump?include_eds of an Envoy's admin interface prints, all of it:
with resource=, mask= or name_regex=, or without include_eds, there are resources that it would
leave out. Dumps of the v2 API, and several in one, are refused too.`}

	codeRedacted = diag.Code{Name: "import-redacted", Doc: `A dump has no secrets.

Envoy writes "[redacted]" in place of each key, token or password in its configuration. xdspub
writes no file with that text. Import the files that Envoy was started with instead. A secret that
Envoy gets by SDS from a file, or from another server than the ADS server, is no error: what asks
for it still gets it there.`}

	codeStatic = diag.Code{Name: "import-static", Severity: diag.Info, Doc: `A resource stays in the static resources of the bootstrap.

Some resources must exist before Envoy gets any others, so xdspub import leaves them in the
bootstrap: clusters that the bootstrap itself names, clusters of management servers, the secrets and
clusters that these clusters name, and an api_listener. Give the bootstrap to validate, render,
watch and serve by --bootstrap, so that they know these names.`}
)
