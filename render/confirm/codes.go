package confirm

import "xdspub/diag"

// Codes are the codes of the findings about refusals.
var Codes = []diag.Code{codeRefusedByEnvoy}

var codeRefusedByEnvoy = diag.Code{Name: "refused-by-envoy", Doc: `Envoy rejected a published file.

With --envoy-admin xdspub waits until the Envoys that read the output directory have confirmed
each step. If one rejects a step, xdspub restores the previous files and holds the snapshot: it does
not publish it again until the source tree changes or you ask for it with --retry-held. The
message is Envoy's own, from its admin interface or from --envoy-log.`}
