package planner

import (
	"slices"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/validate/transition"
)

// Codes returns the codes of all findings of a plan.
func Codes() []diag.Code {
	return slices.Concat(RuleCodes(), diag.InFamily("publishing",
		slices.Concat(render.Codes, []diag.Code{codeEndpointsInlined, codeInotifyBudget, codeRoutesInlined})))
}

// RuleCodes returns the codes of the findings that can be disabled: those of the transition
// rules.
func RuleCodes() []diag.Code {
	var codes []diag.Code
	for _, r := range transition.Rules {
		family := "change"
		if r.Guards {
			family = "guard"
		}
		codes = append(codes, diag.Code{Name: r.Code, Severity: r.Severity, Doc: r.Doc, Family: family})
	}
	return codes
}

var (
	codeEndpointsInlined = diag.Code{Name: "endpoints-inlined", Severity: diag.Warning,
		Doc: `Endpoint assignments are inlined into their clusters, to save inotify instances.

Every path subscription costs Envoy an inotify instance. Linux gives a user 128 by default (sysctl
fs.inotify.max_user_instances), and one too many aborts a running Envoy. When a plan exceeds
--inotify-budget, xdspub writes the endpoints of EDS clusters into the clusters. They stay there
until --eds=file. A change of an endpoint then replaces its cluster and closes the connections of
its pool.`}

	codeInotifyBudget = diag.Code{Name: "inotify-budget", Doc: `The path subscriptions exceed the inotify budget.

Every path subscription costs Envoy an inotify instance. Linux gives a user 128 by default (sysctl
fs.inotify.max_user_instances), and one too many aborts a running Envoy. During a change, running,
draining and new subscriptions count together. xdspub has already inlined endpoints (unless
--eds=file) and routes as far as that helps. Raise the sysctl and --inotify-budget, use
--eds=inline, or use fewer secrets and extension configs.`}

	codeRoutesInlined = diag.Code{Name: "routes-inlined", Severity: diag.Warning,
		Doc: `Route configurations are inlined into their listeners, to save inotify instances.

Every path subscription costs Envoy an inotify instance. Linux gives a user 128 by default (sysctl
fs.inotify.max_user_instances), and one too many aborts a running Envoy. If inlined endpoints do
not save enough, xdspub writes the route configurations of this tree into their listeners, with
validate_clusters: false unless it is set. They stay there until --inotify-budget is raised. A
change of a route then replaces the filter chains of its listeners and drains their connections.`}
)
