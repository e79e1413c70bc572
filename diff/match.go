package diff

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// request is an example of a request.
type request struct {
	method, host, path, query string
	headers                   map[string]string
	of                        string // the route that it was made for
}

func (r request) String() string {
	text := r.method + " http://" + r.host + r.path
	if r.query != "" {
		text += "?" + r.query
	}
	var names []string
	for name, value := range r.headers {
		names = append(names, name+": "+value)
	}
	slices.Sort(names)
	if len(names) > 0 {
		text += " with " + strings.Join(names, ", ")
	}
	return text
}

// answer says whether a route takes a request; perhaps if that depends on more than the request, such as chance.
type answer int

const (
	no answer = iota
	yes
	perhaps
)

func answerOf(ok bool) answer {
	if ok {
		return yes
	}
	return no
}

// matcher is a route with its condition.
type matcher struct {
	*routev3.Route
	key  string // identifies the condition
	path *regexp.Regexp
	bad  bool // Go can't compile an expression as Envoy does
}

func newMatcher(r *routev3.Route) *matcher {
	m := &matcher{Route: r, key: canonical(r.GetMatch().ProtoReflect())}
	if regex := r.GetMatch().GetSafeRegex(); regex != nil {
		m.path, m.bad = compile(regex.GetRegex())
	}
	return m
}

// compile compiles an expression that must match all of a text. Envoy matches bytes and Go characters, so an
// expression beyond ASCII is bad.
func compile(expression string) (r *regexp.Regexp, bad bool) {
	for _, c := range []byte(expression) {
		if c >= 0x80 {
			return nil, true
		}
	}
	r, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	return r, err != nil
}

// matches reports whether the route takes a request.
func (m *matcher) matches(r request) answer {
	of := m.GetMatch()
	is := m.matchesPath(r)
	// An example request decides none of these conditions. A runtime key may have any value.
	if len(of.GetDynamicMetadata())+len(of.GetFilterState())+len(of.GetCookies()) > 0 || of.GetTlsContext() != nil || of.GetRuntimeFraction() != nil {
		is = both(is, perhaps)
	}
	for _, h := range of.GetHeaders() {
		is = both(is, matchesHeader(h, r))
	}
	for _, q := range of.GetQueryParameters() {
		is = both(is, matchesQuery(q, r))
	}
	if of.GetGrpc() != nil {
		is = both(is, answerOf(strings.HasPrefix(r.headers["content-type"], "application/grpc")))
	}
	return is
}

// both returns the answer if two conditions must hold.
func both(a, b answer) answer {
	switch {
	case a == no || b == no:
		return no
	case a == perhaps || b == perhaps:
		return perhaps
	}
	return yes
}

func (m *matcher) matchesPath(r request) answer {
	of := m.GetMatch()
	path := r.path
	fold := of.GetCaseSensitive() != nil && !of.GetCaseSensitive().GetValue()
	small := func(text string) string {
		if fold {
			return strings.ToLower(text)
		}
		return text
	}
	switch s := of.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return answerOf(strings.HasPrefix(small(path), small(s.Prefix)))
	case *routev3.RouteMatch_Path:
		return answerOf(small(path) == small(s.Path))
	case *routev3.RouteMatch_PathSeparatedPrefix:
		rest, ok := strings.CutPrefix(small(path), small(s.PathSeparatedPrefix))
		return answerOf(ok && (rest == "" || rest[0] == '/'))
	case *routev3.RouteMatch_SafeRegex:
		if m.bad {
			return perhaps
		}
		return answerOf(m.path.MatchString(path))
	case *routev3.RouteMatch_ConnectMatcher_:
		return answerOf(r.method == "CONNECT")
	}
	return perhaps
}

// matchesHeader reports whether a condition on a header holds.
func matchesHeader(h *routev3.HeaderMatcher, r request) answer {
	value, has := header(h.GetName(), r)
	if !has && h.GetTreatMissingHeaderAsEmpty() {
		has = true
	}
	is := no
	switch s := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		is = answerOf(has == s.PresentMatch)
	case nil:
		is = answerOf(has)
	case *routev3.HeaderMatcher_RangeMatch:
		n, err := strconv.ParseInt(value, 10, 64)
		is = answerOf(has && err == nil && n >= s.RangeMatch.GetStart() && n < s.RangeMatch.GetEnd())
	case *routev3.HeaderMatcher_StringMatch:
		if is = answerOf(false); has {
			is = matchesString(s.StringMatch, value)
		}
	default:
		return perhaps // the deprecated forms
	}
	if !h.GetInvertMatch() || is == perhaps {
		return is
	}
	return answerOf(is == no)
}

// header returns the value of a header of a request.
func header(name string, r request) (value string, has bool) {
	switch strings.ToLower(name) {
	case ":authority", "host":
		return r.host, true
	case ":path":
		if r.query != "" {
			return r.path + "?" + r.query, true
		}
		return r.path, true
	case ":method":
		return r.method, true
	case ":scheme":
		return "http", true
	}
	value, has = r.headers[strings.ToLower(name)]
	return value, has
}

func matchesString(m *matcherv3.StringMatcher, value string) answer {
	small := func(text string) string {
		if m.GetIgnoreCase() {
			return strings.ToLower(text)
		}
		return text
	}
	switch s := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return answerOf(small(value) == small(s.Exact))
	case *matcherv3.StringMatcher_Prefix:
		return answerOf(strings.HasPrefix(small(value), small(s.Prefix)))
	case *matcherv3.StringMatcher_Suffix:
		return answerOf(strings.HasSuffix(small(value), small(s.Suffix)))
	case *matcherv3.StringMatcher_Contains:
		return answerOf(strings.Contains(small(value), small(s.Contains)))
	case *matcherv3.StringMatcher_SafeRegex:
		expression, bad := compile(s.SafeRegex.GetRegex())
		if bad {
			return perhaps
		}
		return answerOf(expression.MatchString(value))
	}
	return perhaps
}

// matchesQuery reports whether a condition on a query parameter holds. A request has at most one parameter of a name.
func matchesQuery(q *routev3.QueryParameterMatcher, r request) answer {
	value, has := "", false
	for part := range strings.SplitSeq(r.query, "&") {
		if name, of, _ := strings.Cut(part, "="); part != "" && name == q.GetName() {
			value, has = of, true
		}
	}
	switch s := q.GetQueryParameterMatchSpecifier().(type) {
	case *routev3.QueryParameterMatcher_PresentMatch:
		return answerOf(has == s.PresentMatch)
	case *routev3.QueryParameterMatcher_StringMatch:
		if !has {
			return no
		}
		return matchesString(s.StringMatch, value)
	}
	return answerOf(has)
}

// example returns a request that the route should take. ok is false if there is no way to make one.
func (m *matcher) example(hostName string) (r request, ok bool) {
	of := m.GetMatch()
	r = request{method: "GET", host: hostName, headers: make(map[string]string)}
	switch s := of.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		r.path = s.Prefix
	case *routev3.RouteMatch_Path:
		r.path = s.Path
	case *routev3.RouteMatch_PathSeparatedPrefix:
		r.path = s.PathSeparatedPrefix
	case *routev3.RouteMatch_SafeRegex:
		r.path = sample(s.SafeRegex.GetRegex())
	default:
		return r, false
	}
	if !isPath(r.path) {
		if r.path = "/" + strings.TrimPrefix(r.path, "/"); !isPath(r.path) {
			return r, false
		}
	}
	for _, h := range of.GetHeaders() {
		exampleHeader(&r, h)
	}
	for _, q := range of.GetQueryParameters() {
		value, ok := "x", true
		if s := q.GetStringMatch(); s != nil {
			value = sampleString(s)
		} else if p, is := q.GetQueryParameterMatchSpecifier().(*routev3.QueryParameterMatcher_PresentMatch); is && !p.PresentMatch {
			ok = false
		}
		if ok {
			r.query = strings.TrimPrefix(r.query+"&"+q.GetName()+"="+value, "&")
		}
	}
	if of.GetGrpc() != nil {
		r.headers["content-type"] = "application/grpc"
	}
	return r, true
}

// isPath reports whether a client can send a path as it is.
func isPath(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for _, c := range []byte(path) {
		if c <= ' ' || c >= 0x7f || c == '?' || c == '#' {
			return false
		}
	}
	return true
}

// exampleHeader adds a header that satisfies a condition, unless the condition wants none.
func exampleHeader(r *request, h *routev3.HeaderMatcher) {
	value := "x"
	switch s := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		if s.PresentMatch == h.GetInvertMatch() {
			return
		}
	case *routev3.HeaderMatcher_RangeMatch:
		value = strconv.FormatInt(s.RangeMatch.GetStart(), 10)
	case *routev3.HeaderMatcher_StringMatch:
		value = sampleString(s.StringMatch)
	}
	if h.GetInvertMatch() {
		return
	}
	switch name := strings.ToLower(h.GetName()); name {
	case ":method":
		r.method = value
	case ":authority", "host", ":path", ":scheme": // the example keeps its own
	default:
		r.headers[name] = value
	}
}

func sampleString(m *matcherv3.StringMatcher) string {
	if s := m.GetSafeRegex(); s != nil {
		return sample(s.GetRegex())
	}
	return m.GetExact() + m.GetPrefix() + m.GetSuffix() + m.GetContains()
}

// sample returns a text that an expression is likely to match. Its caller asks the expression.
func sample(expression string) string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	sampleOf(&b, parsed)
	return b.String()
}

func sampleOf(b *strings.Builder, r *syntax.Regexp) {
	switch {
	case b.Len() > mostValue:
	case r.Op == syntax.OpLiteral:
		b.WriteString(string(r.Rune))
	case r.Op == syntax.OpCharClass && len(r.Rune) > 0:
		b.WriteRune(sampleRune(r.Rune))
	case r.Op == syntax.OpAnyChar || r.Op == syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case r.Op == syntax.OpConcat || r.Op == syntax.OpCapture || r.Op == syntax.OpPlus:
		for _, sub := range r.Sub {
			sampleOf(b, sub)
		}
	case r.Op == syntax.OpAlternate:
		sampleOf(b, r.Sub[0])
	case r.Op == syntax.OpRepeat:
		for range r.Min {
			sampleOf(b, r.Sub[0])
		}
	}
}

// sampleRune returns a character of a class: x, 1 or a if the class has it, else its first one.
func sampleRune(ranges []rune) rune {
	for _, c := range "x1a" {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= c && c <= ranges[i+1] {
				return c
			}
		}
	}
	return ranges[0]
}
