package planner

import (
	"slices"

	"xdspub/diag"
	"xdspub/diff"
	"xdspub/render"
)

// Codes returns the codes of all findings of a plan.
func Codes() []diag.Code {
	return slices.Concat(RuleCodes(), render.Codes, []diag.Code{codeEndpointsInlined, codeInotifyBudget, codeRoutesInlined})
}

// RuleCodes returns the codes of the findings that can be disabled: those of the transition
// rules.
func RuleCodes() []diag.Code {
	var codes []diag.Code
	for _, r := range diff.Rules {
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc})
	}
	return codes
}

var (
	codeEndpointsInlined = diag.Code{Name: "endpoints-inlined", Severity: diag.Warning, Doc: `Endpoint assignments are inlined into their clusters, to save inotify instances.

Every path subscription costs Envoy an inotify instance, 128 a user by default
(sysctl fs.inotify.max_user_instances), and the one too many aborts a live Envoy.
Past --inotify-budget the endpoints of EDS clusters are written into the clusters
and stay there, until --eds=file. Each change of an endpoint then replaces its
cluster and closes the connections of its pool.`}

	codeInotifyBudget = diag.Code{Name: "inotify-budget", Doc: `The path subscriptions exceed the inotify budget.

Every path subscription costs Envoy an inotify instance, 128 a user by default
(sysctl fs.inotify.max_user_instances), and the one too many aborts a live Envoy.
While a change goes on, what runs, what drains and what comes count together.
Endpoints (unless --eds=file) and routes have gone inline as far as that helps.
Raise the sysctl and --inotify-budget, use --eds=inline, or use fewer secrets and
extension configs.`}

	codeRoutesInlined = diag.Code{Name: "routes-inlined", Severity: diag.Warning, Doc: `Route configurations are inlined into their listeners, to save inotify instances.

Every path subscription costs Envoy an inotify instance, 128 a user by default
(sysctl fs.inotify.max_user_instances), and the one too many aborts a live Envoy.
Where endpoints inline do not save enough, the route configurations that listeners
ask this tree for are written into the listeners, with validate_clusters: false
unless it is set, and stay there until --inotify-budget is raised. Each change of a
route then replaces the filter chains of its listeners and drains their connections.`}
)
