package confirm

import "xdspub/diag"

// Codes are the codes of the findings about refusals.
var Codes = []diag.Code{codeRefusedByEnvoy}

var codeRefusedByEnvoy = diag.Code{Name: "refused-by-envoy", Doc: `Envoy rejected a published file.

With --envoy-admin each step is confirmed by the Envoys that read the output
directory. When one refuses a step, the steps that were out are put back, and the
snapshot is held until the source tree changes: --retry-held tries it again. The
message is Envoy's own, from its admin interface or from --envoy-log.`}
