package follow

import "xdspub/diag"

// Codes are the codes of this package's findings, sorted by name.
var Codes = []diag.Code{
	codeEmptySubscription, codeInotifyLimit, codeMissingPath, codeNoADS, codeNoConfigSource,
	codeNodeMissing, codeSharedDirectory, codeSubscriptionMismatch, codeUnsupportedFile,
}

var (
	codeEmptySubscription = diag.Code{Name: "empty-subscription", Doc: `A file that Envoy subscribes to has no resources.

For clusters and listeners an empty file is a success that removes all of them: a warning, as it
may be meant. For endpoints and routes Envoy counts only update_empty, and has none when it
starts: a warning too. It rejects an empty file of a secret, an extension config or a runtime
layer.`}

	codeInotifyLimit = diag.Code{Name: "inotify-limit", Doc: `The path subscriptions of a bootstrap come near Linux's inotify limit.

Every path subscription costs Envoy an inotify instance, and each secret with certificate files
two. Linux gives a user 128 by default (sysctl fs.inotify.max_user_instances). One too many
aborts a running Envoy: an error. While a listener or cluster is replaced, its old and new
subscriptions count together: a warning from 100 on.`}

	codeMissingPath = diag.Code{Name: "missing-path", Doc: `A file or directory that Envoy needs is missing.

"paths must refer to an existing path in the system": without the file of a subscription Envoy
rejects the cluster or listener, and does not start if its bootstrap subscribes. If a certificate,
key or other data is missing, Envoy rejects the resource ("Invalid path"). Relative paths begin at
Envoy's working directory: set it with --root. The directory of a disk layer's symlink_root must
exist ("unable to add filesystem watch"). If the files are not on this machine, use --disable
missing-path.`}

	codeNoADS = diag.Code{Name: "no-ads", Doc: `A config source uses ADS, but the bootstrap has no ads_config.

"ADS must be configured to support an ADS config source": Envoy rejects the cluster or listener.
With such an LDS listener it was still INITIALIZING after 40 s. With one in its bootstrap it does
not start: it shuts down for a cluster, and aborts for a listener.`}

	codeNoConfigSource = diag.Code{Name: "no-config-source", Doc: `A subscription has no config source.

"cannot create an EDS cluster without an EDS config". In a source tree a missing config source
means "from this tree"; for files that Envoy reads itself, write one.`}

	codeNodeMissing = diag.Code{Name: "node-missing", Severity: diag.Warning, Doc: `A bootstrap with subscriptions does not set node.id and node.cluster.

"node 'id' and 'cluster' are required": with any subscription, to a file too, Envoy does not start
without node.id and node.cluster. It is a warning, as the flags --service-node and
--service-cluster can set them.`}

	codeSharedDirectory = diag.Code{Name: "shared-directory", Severity: diag.Warning, Doc: `Subscriptions of several types watch the same directory.

Each subscription watches the whole directory of its file. A rename in it wakes all of them, and a
busy Envoy may read listeners before the clusters that they need: it then rejects the listeners
until the next rename (Envoy issue 31678; 12 of 12 changes in 3 to 5 of 8 processes). With one
directory for each file Envoy reads the files in the order of the renames.`}

	codeSubscriptionMismatch = diag.Code{Name: "subscription-mismatch", Doc: `A file does not hold the resource that Envoy subscribes to.

A file of endpoints, a route configuration, a secret, an extension config or a runtime layer must
hold exactly one resource with the name of the subscription ("Unexpected EDS resource length: 2",
"Unexpected RDS configuration (expecting r): zz"). A file of clusters or listeners may hold many,
of that type only: Envoy rejects the whole file for one resource of another type.`}

	codeUnsupportedFile = diag.Code{Name: "unsupported-file", Doc: `Envoy can't watch the path of a subscription.

A relative path without a slash has no directory to watch ("invalid file path cds.yaml"): write
./cds.yaml. A path must not be a directory. If watched_directory is a file, Envoy accepts it and
never sees a change (a warning).`}
)
