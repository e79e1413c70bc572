package pipeline

import "xdspub/diag"

// Codes are the findings of this package, sorted by name.
var Codes = []diag.Code{codeEmptyTree, codeEndpointsInlined, codeInotifyBudget, codeOutputInSource}

var (
	codeEmptyTree = diag.Code{Name: "empty-tree", Doc: `The source tree holds no resource.

Envoy takes an empty file as an order to remove all clusters or listeners, and
calls that a success. A tree without resources is mostly a wrong path, a failed
checkout or a failed template; --allow-empty says that it is meant.`}

	codeEndpointsInlined = diag.Code{Name: "endpoints-inlined", Severity: diag.Warning, Doc: `Endpoint assignments go into their clusters, to save inotify instances.

Every path subscription costs Envoy an inotify instance, 128 a user by default
(sysctl fs.inotify.max_user_instances), and the one too many aborts a live Envoy.
Past --inotify-budget the endpoints of EDS clusters are written into the clusters
and stay there, until --eds=file. Each change of an endpoint then replaces its
cluster and closes the connections of its pool.`}

	codeInotifyBudget = diag.Code{Name: "inotify-budget", Doc: `The path subscriptions do not fit into the inotify budget.

Every path subscription costs Envoy an inotify instance, 128 a user by default
(sysctl fs.inotify.max_user_instances), and the one too many aborts a live Envoy.
While a change goes on, what runs, what drains and what comes count together.
Raise the sysctl and --inotify-budget, use --eds=inline, or use fewer route
configurations and secrets.`}

	codeOutputInSource = diag.Code{Name: "output-in-source", Doc: `The output directory and the source tree lie one inside the other.

What is published would be read as a source on the next pass.`}
)
