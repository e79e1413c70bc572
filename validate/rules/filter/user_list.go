package filter

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var userList = &validate.Rule{
	Code: "user-list",
	Doc: `The user list of basic_auth is invalid.

Each line is name:{SHA}hash, as htpasswd -s writes it; Envoy skips empty lines and lines that
begin with #. It rejects other hashes ("unsupported htpasswd format: please use {SHA}"), a
hash that is not 28 characters long (a carriage return or space at the end counts), a line
without a colon, an empty name or password, two lines for one user, and an empty list unless
it is a route's. This rule does not read user lists in files on Envoy's machine.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.http.basic_auth.v3.BasicAuth",
		"envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		var users *corev3.DataSource
		switch m := n.Message.(type) {
		case *basicauthv3.BasicAuth:
			users = m.GetUsers()
		case *basicauthv3.BasicAuthPerRoute:
			users = m.GetUsers()
		}
		list, ok := facts.InlineContent(users)
		if users != nil && !ok || len(list) == 0 && facts.IsPerRoute(n) {
			return // a list in a file or a variable, or a configuration for a route without a list
		}
		if fault := faultOfUsers(string(list)); fault != "" {
			p.Report(validate.Finding{
				Path:    n.Path().Field("users"),
				Message: fault,
				Help:    "write name:{SHA}hash on each line, as htpasswd -s does",
			})
		}
	},
}

// hashLength is the length of a SHA-1 hash in base64.
const hashLength = 28

// faultOfUsers returns the fault of a list of users, or "". The text contains no password and no hash.
func faultOfUsers(list string) string {
	if list == "" {
		return "basic_auth has no users"
	}
	lines := make(map[string]int)
	for i, line := range strings.Split(list, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, password, colon := strings.Cut(line, ":")
		hash, sha := strings.CutPrefix(password, "{SHA}")
		fault := ""
		switch {
		case !colon:
			fault = "has no colon"
		case name == "" || password == "":
			fault = "has no name or no password"
		case lines[name] > 0:
			fault = fmt.Sprintf("repeats user %q of line %d", name, lines[name])
		case !sha:
			fault = "has a hash that is not {SHA}"
		case len(hash) != hashLength:
			fault = fmt.Sprintf("has a hash of %d characters, not %d", len(hash), hashLength)
		}
		if fault != "" {
			return fmt.Sprintf("line %d of the user list %s", i+1, fault)
		}
		lines[name] = i + 1
	}
	return ""
}
