package pipeline

import (
	"cmp"
	"slices"

	"xdspub/diag"
	"xdspub/diff"
	"xdspub/follow"
	"xdspub/load"
	"xdspub/render"
	"xdspub/validate/rules"
)

// RuleCodes returns the codes that can be disabled: of the validation rules, of the
// rules about what runs, and of what is said about a followed bootstrap's files.
func RuleCodes() []diag.Code {
	codes := slices.Clone(follow.Codes)
	for _, r := range rules.All {
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc})
	}
	for _, r := range diff.Rules {
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc})
	}
	return codes
}

// Codes returns all codes that a finding can have, of every stage, sorted and each
// once: a rule may share its code with the loader, which meets the same fault
// earlier.
func Codes() []diag.Code {
	own := []diag.Code{codeEmptyTree, codeEndpointsInlined, codeInotifyBudget, codeOutputInSource, codeRefusedByEnvoy, codeRoutesInlined, codeTakenAs, diag.TooMany}
	codes := slices.Concat(RuleCodes(), load.Codes, render.Codes, own)
	slices.SortStableFunc(codes, func(a, b diag.Code) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(codes, func(a, b diag.Code) bool { return a.Name == b.Name })
}

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
Endpoints (unless --eds=file) and routes have gone inline as far as that helps.
Raise the sysctl and --inotify-budget, use --eds=inline, or use fewer secrets and
extension configs.`}

	codeOutputInSource = diag.Code{Name: "output-in-source", Doc: `The output directory and the source tree lie one inside the other.

What is published would be read as a source the next time.`}

	codeRefusedByEnvoy = diag.Code{Name: "refused-by-envoy", Doc: `An Envoy refused what was published.

With --envoy-admin each step is confirmed by the Envoys that read the output
directory. When one refuses a step, the steps that were out are put back, and the
snapshot is held until the source tree changes: --retry-held tries it again. The
message is Envoy's own, from its admin interface or from --envoy-log.`}

	codeRoutesInlined = diag.Code{Name: "routes-inlined", Severity: diag.Warning, Doc: `Route configurations go into their listeners, to save inotify instances.

Every path subscription costs Envoy an inotify instance, 128 a user by default
(sysctl fs.inotify.max_user_instances), and the one too many aborts a live Envoy.
Where endpoints inline do not save enough, the route configurations that listeners
ask this tree for are written into the listeners, with validate_clusters: false
unless it is set, and stay there until --inotify-budget is raised. Each change of a
route then replaces the filter chains of its listeners and drains their connections.`}
)
