package uritemplate_test

import (
	"slices"
	"testing"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
	"xdspub/validate/uritemplate"
)

// TestMatch has the verdicts of Envoy 1.40.0 about templates.
func TestMatch(t *testing.T) {
	taken := []string{
		"/", "/a", "/a/", "/a/*", "/a/**", "/a/*/b", "/a/**/b", "/a/***", "/*/**", "/*", "/**", "/{a}", "/{a=*}",
		"/{a=**}", "/{a=b/*}", "/{a=b*}", "/{a=**/b}", "/{a=**}/{b=c}", "/{a=**}/b", "/{a_b}", "/{abcdefghijklmnop}",
		"/{a}/{b}/{c}/{d}/{e}", "/a{b}", "/{a}b", "/{a}.json", "/{a}.json/x", "/{a}.json/", "/*.json", "/**.json",
		"/*/", "/a%20", "/a%2", "/a=b", "/a*", "/a*b", "/**/", "/{a=*}*", "/a:b@c!$&'()+,;", "/~-._", "/{a=b=c}",
		"/{a=*/**}", "/{a=**}.json", "/{a=**}x", "/**a", "/**/a", "/{a}/", "/{a=a}", "/$", "/a.b$(c)+",
		"/a{b}c/d{e}f", "/{a}b/{c}d", "/a{b}/", "/a{b}/c", "/{a}*b/c", "/a*{b}", "/a{b}*", "/a{b=*}c", "/a{b=**}c",
		"/a{b=**}c/d", "/{a=**}.json/{b=c}", "/**/b{c=d}", "/{a}b/", "/{a=b/c}d/e", "/{a=b/*/c}", "/{a=b/**/c}",
		"/{a=*/*}", "/{a=*/b*}", "/{a}=/b", "/a{b}/{c=**}",
	}
	refused := []string{
		"/a//b", "//", "/**/**", "/**/*", "/{a}/{a}", "/{a=}", "/{a=b/}", "/{a=/b}", "/{a=*b}", "/{a=**/*}",
		"/{a=**}/{b}", "/{1a}", "/{a-b}", "/{_a}", "/{abcdefghijklmnopq}", "/{a}/{b}/{c}/{d}/{e}/{f}", "/a b", "/é",
		"/a?b", "/a#b", "/}", "/a}", "/{", "/{}", "/{a", "/{{a}}", "/a[b]", "/a|b", `/a"b`, "/a^b", "/{a}{b}",
		"/{a={b}}", "/***/", `/a\b`, "/{a=**/b/**}", "*", "{a}", "/*{a}", "/**{a}", "/{a}//", "/a{b=c/d}",
		"/a{b=c/d}e/f", "/a{b}c{d}", "/a{", "/a{b", "/a{b/c}", "/a{b/c", "/{a}{", "/{a=**}.json/{b}", "/a}{b",
		"/a}b{c}", "/[{a}", "/{a}[", "/a{b}[", "/{a}/b}", "/a{1}", "/a{}", "/a{b=}", "/a{b=c/}", "/a{b=/c}",
		"/a{b=*c}", "/a{b}/c{b}", "/a{b}//c", "/{a=**}/b{c}", "/**/b{c}", "/x{a}/x{b}/x{c}/x{d}/x{e}/x{f}", "/*a/b",
		"/*a/", "/**a/b", "/a{{b}}", "/a{b{c}}", "/a{b={c}}d", "/{a=b}c{d}", "/{a/b}", "/{a/b=c}", "/a{b=c}d}",
		"/{a}b{c}/d", "/{a=b{c}}", "/{a}b}", "/{a}/*{b}", "/a{b=**}/{c=**}", "/a{b=**}/{c}", "/a{b=**}/c{d}",
		"/{a=**}x/{b}", "/**x/{b}", "/*x/{b}",
	}
	mixed := func(template string) ([]string, error) { return uritemplate.Match(template, true) }
	check(t, mixed, taken, refused)
	askEnvoys(t, slices.Concat(taken, refused))
}

// askEnvoys compares Match with an Envoy of each grammar.
func askEnvoys(t *testing.T, templates []string) {
	t.Helper()
	for _, release := range []string{"1.40", "1.38"} {
		v := envoyapi.Named(release)
		var listeners []map[string]any
		for _, template := range templates {
			listeners = append(listeners, matching(template))
		}
		refused := envoytest.Listeners(t, envoytest.Version(t, v.Name), listeners)
		for i, template := range templates {
			_, err := uritemplate.Match(template, v.TemplatesMixSegments())
			if _, no := refused[i]; no != (err != nil) {
				t.Errorf("Envoy %s: %q: %v, and Envoy says %q", v.Name, template, err, refused[i])
			}
		}
	}
}

// matching returns a listener with a route that matches by a template.
func matching(template string) map[string]any {
	policy := map[string]any{"name": "t", "typed_config": map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig", "path_template": template,
	}}
	return map[string]any{"filter_chains": []any{map[string]any{"filters": []any{map[string]any{"name": "h", "typed_config": map[string]any{
		"@type":        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":  "h",
		"http_filters": []any{map[string]any{"name": "router", "typed_config": map[string]any{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}},
		"route_config": map[string]any{"name": "r", "virtual_hosts": []any{map[string]any{"name": "v", "domains": []string{"*"}, "routes": []any{
			map[string]any{"match": map[string]any{"path_match_policy": policy}, "redirect": map[string]any{"https_redirect": true}},
		}}}},
	}}}}}}
}

// TestRewrite has the verdicts of Envoy 1.40.0 about templates.
func TestRewrite(t *testing.T) {
	taken := []string{
		"/", "/x", "/{b}", "/{b}/{b}", "/{b}{b}", "/x{b}y", "/*", "/{b}/", "/a%", "/x*y", "/{b}*", "/x=y",
	}
	refused := []string{
		"x", "//", "/a//b", "/{b", "/b}", "/{}", "/{1}", "/{b=*}", "/a b", "/é", "/a?b", "/a#c", "/[",
		"/a/{b}?x={b}", "{b}", "/{b}//",
	}
	check(t, uritemplate.Rewrite, taken, refused)
}

func check(t *testing.T, read func(string) ([]string, error), taken, refused []string) {
	t.Helper()
	for _, template := range taken {
		if _, err := read(template); err != nil {
			t.Errorf("%q: %v", template, err)
		}
	}
	for _, template := range refused {
		if _, err := read(template); err == nil {
			t.Errorf("%q: no error", template)
		}
	}
}

func TestNames(t *testing.T) {
	names, err := uritemplate.Match("/users/{user}/v{version}/{file=docs/**}.json", true)
	if want := []string{"user", "version", "file"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	names, err = uritemplate.Rewrite("/{file}/of/{user}")
	if want := []string{"file", "user"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
}

func FuzzMatch(f *testing.F) {
	for _, template := range []string{"/a/*/{b=c/**}.json", "/a{b}c/d{e}f", "/*a/b", "/{a={b}}"} {
		f.Add(template)
	}
	f.Fuzz(func(t *testing.T, template string) {
		if names, err := uritemplate.Match(template, true); err == nil && len(names) > 5 {
			t.Errorf("%q: %d names", template, len(names))
		}
		if _, err := uritemplate.Rewrite(template); err == nil && template[0] != '/' {
			t.Errorf("%q: no slash at the beginning", template)
		}
	})
}
