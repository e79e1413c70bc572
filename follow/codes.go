package follow

import "xdspub/diag"

// Codes are the codes of the findings of this package, sorted by name.
var Codes = []diag.Code{codeEmptySubscription, codeInotifyLimit, codeMissingPath, codeNoADS, codeNoConfigSource, codeNodeMissing, codeSharedDirectory, codeSubscriptionMismatch, codeUnsupportedFile}

var (
	codeEmptySubscription = diag.Code{Name: "empty-subscription", Doc: `A file that Envoy subscribes to has no resources.

For clusters and listeners that is a success that removes all of them; for endpoints
and routes only update_empty is counted, and an Envoy that starts has none: a
warning, as it may be meant. A file of a secret, an extension config or a runtime
layer without a resource is refused.`}

	codeInotifyLimit = diag.Code{Name: "inotify-limit", Doc: `The path subscriptions of a bootstrap come near Linux's inotify limit.

Every path subscription costs Envoy an inotify instance, and each secret with
certificate files two, of 128 a user by default (sysctl
fs.inotify.max_user_instances). One too many aborts a live Envoy. While a listener
or cluster is replaced, old and new count together: a warning from 100 on.`}

	codeMissingPath = diag.Code{Name: "missing-path", Doc: `A file or directory that Envoy needs is missing.

"paths must refer to an existing path in the system": without the file of a
subscription Envoy refuses the cluster or listener, and for one in its bootstrap
does not start. A certificate, key or other data that is missing has the resource
refused ("Invalid path"). Relative paths begin at Envoy's working directory, which
--root names. Of a disk layer of the runtime, the directory that its symlink_root stands in
must be there ("unable to add filesystem watch"). Where the files are not on this machine, --disable missing-path.`}

	codeNoADS = diag.Code{Name: "no-ads", Doc: `A config source uses ADS, but the bootstrap has no ads_config.

"ADS must be configured to support an ADS config source": Envoy refuses the cluster or
listener. With such a listener at its start it was still INITIALIZING after 40 s. For one
in its bootstrap it does not start: it shuts down for a cluster, and aborts for a listener.`}

	codeNoConfigSource = diag.Code{Name: "no-config-source", Doc: `A subscription has no config source.

"cannot create an EDS cluster without an EDS config". In a source tree that means
"from this tree"; an Envoy that reads the file itself has to be told.`}

	codeNodeMissing = diag.Code{Name: "node-missing", Severity: diag.Warning, Doc: `A bootstrap with subscriptions does not set node.id and node.cluster.

"node 'id' and 'cluster' are required": with any subscription, also to a file, Envoy does
not start without node.id and node.cluster. It is a warning, as the flags --service-node
and --service-cluster may give them.`}

	codeSharedDirectory = diag.Code{Name: "shared-directory", Severity: diag.Warning, Doc: `Subscriptions of several types watch the same directory.

Each subscription watches the whole directory of its file. A rename there wakes all
of them, and a busy Envoy reads the files in an order of its own: listeners before
the clusters that they need, say, which has the listeners refused until the next
rename (envoy issue 31678; 12 of 12 changes in 3 to 5 of 8 processes). A directory of
its own for each file keeps the order of the renames.`}

	codeSubscriptionMismatch = diag.Code{Name: "subscription-mismatch", Doc: `A file does not hold the resource that Envoy subscribes to.

A file of endpoints, a route configuration, a secret, an extension config or a
runtime layer holds exactly one resource, of the name that is asked for
("Unexpected EDS resource length: 2", "Unexpected RDS configuration (expecting r):
zz"). Clusters and listeners may be many, of that type only: one resource of
another type has the whole file refused.`}

	codeUnsupportedFile = diag.Code{Name: "unsupported-file", Doc: `Envoy can't watch the path of a subscription.

A relative path without a slash has no
directory to watch ("invalid file path cds.yaml"): ./cds.yaml works. A directory is
no file. A file where a directory is to be watched is taken, and no change is ever seen:
a warning.`}
)
