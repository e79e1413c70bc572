// Package route holds the rules about route configurations, scopes, virtual hosts and routes.
package route

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("route", validate.Envoy,
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
)
