// Package route holds the rules about route configurations, scopes, virtual hosts and routes.
package route

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	directResponseBody,
	duplicateDomain,
	emptyRoutes,
	headerMutation,
	ignoredRouteField,
	perFilterConfig,
	relativeRewrite,
	retryPolicy,
	routeConflict,
	routeIncomplete,
	scopedRoutes,
	unreachableRoute,
	vhdsConfigSource,
}
