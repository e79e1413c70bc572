package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/xds"
)

// EndpointsMode is a value of --eds.
type EndpointsMode string

const (
	// EndpointsAuto starts with files, and changes to inline for good when files exceed the
	// inotify budget.
	EndpointsAuto EndpointsMode = "auto"
	// EndpointsFile gives each EDS cluster a file of its own.
	EndpointsFile EndpointsMode = "file"
	// EndpointsInline puts the endpoints into the clusters.
	EndpointsInline EndpointsMode = "inline"
)

// renderWithin renders the Snapshot so that running, draining and new path subscriptions fit into the inotify
// budget. renderWithin records in t the resources that it inlines to fit.
func (c *change) renderWithin(ctx context.Context, t *render.Target) (*render.Output, diag.List) {
	running := c.draining()
	for _, of := range xds.Entrypoints {
		running = slices.AppendSeq(running, maps.Keys(c.st.Watches(of)))
	}
	var needed []int // by inline mode
	for _, way := range c.inlineModes() {
		t.InlineEndpoints, t.InlineRoutes = way.endpoints, way.routes
		out, list := c.renderer.Render(ctx, c.s, *t)
		if out == nil {
			return nil, list
		}
		needed = append(needed, len(out.Watches)+len(without(running, out.Watches)))
		if needed[len(needed)-1] <= c.options.InotifyBudget {
			return out, append(list, c.warnInlined(way, needed[0])...)
		}
	}
	inline := ""
	if least := needed[len(needed)-1]; least < needed[0] {
		inline = fmt.Sprintf(" (%d with everything inlined)", least)
	}
	help := "raise the sysctl fs.inotify.max_user_instances and --inotify-budget"
	if c.options.Endpoints == EndpointsFile {
		help += ", or use --eds=inline"
	}
	return nil, diag.List{{
		Code: codeInotifyBudget.Name, Position: diag.Position{File: c.options.Source},
		Message: fmt.Sprintf("Envoy would need %d inotify instances for its path subscriptions%s, the "+
			"budget is %d", needed[0], inline, c.options.InotifyBudget),
		Help: help,
	}}
}

// inlineMode is the set of inlined resources.
type inlineMode struct{ endpoints, routes bool }

// currentInlineMode returns what is inlined now and stays so: endpoints until --eds
// changes, routes until the budget is raised.
func (c *change) currentInlineMode() inlineMode {
	return inlineMode{
		endpoints: c.options.Endpoints == EndpointsInline || c.options.Endpoints == EndpointsAuto && c.st.Manifest.EDSMode == string(EndpointsInline),
		routes:    c.options.InotifyBudget <= c.st.Manifest.InlineRoutesBudget,
	}
}

// inlineModes returns the modes that the Options allow, the one that costs the fewest
// connections first. It inlines endpoints before routes: each change of an inlined route
// drains the connections of a listener.
func (c *change) inlineModes() []inlineMode {
	is := c.currentInlineMode()
	var ways []inlineMode
	for _, w := range []inlineMode{{}, {endpoints: true}, {routes: true}, {endpoints: true, routes: true}} {
		switch {
		case is.endpoints && !w.endpoints, is.routes && !w.routes, c.options.Endpoints == EndpointsFile && w.endpoints:
		default:
			ways = append(ways, w)
		}
	}
	return ways
}

// warnInlined returns warnings of what is inlined from now on, because of the budget.
func (c *change) warnInlined(w inlineMode, needed int) diag.List {
	is := c.currentInlineMode()
	budget := fmt.Sprintf("Envoy would need %d inotify instances for its path subscriptions, the budget is %d", needed, c.options.InotifyBudget)
	const help = "to keep them in files, raise the sysctl fs.inotify.max_user_instances and --inotify-budget"
	var list diag.List
	if w.endpoints && !is.endpoints {
		list = append(list, diag.Diagnostic{
			Code: codeEndpointsInlined.Name, Severity: codeEndpointsInlined.Severity, Position: diag.Position{File: c.options.Source},
			Message: "endpoint assignments are inlined into their clusters " +
				"from now on: " + budget + "; a change of an endpoint then replaces its cluster and closes its connections",
			Help: help + "; to accept this, use --eds=inline",
		})
	}
	if w.routes && !is.routes {
		list = append(list, diag.Diagnostic{
			Code: codeRoutesInlined.Name, Severity: codeRoutesInlined.Severity, Position: diag.Position{File: c.options.Source},
			Message: "route configurations are inlined into their listeners " +
				"from now on: " + budget + "; a change of a route then replaces the filter chains of its listeners and drains their connections",
			Help: help + "; they return to files when --inotify-budget is raised",
		})
	}
	return list
}
