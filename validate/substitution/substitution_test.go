package substitution_test

import (
	"encoding/base64"
	"slices"
	"testing"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
	"xdspub/validate/cel"
	"xdspub/validate/substitution"
)

func refusedBy(faults []substitution.Fault) bool {
	return slices.ContainsFunc(faults, func(f substitution.Fault) bool { return !f.Taken })
}

// language is the language of the Envoy that has judged testdata.
var language = languageOf(envoyapi.Latest)

func languageOf(v *envoyapi.Version) *substitution.Language {
	c := v.FormatCommands()
	return &substitution.Language{BuiltIn: c.BuiltIn, Names: c.Names, Newer: c.Newer, Generic: c.Generic, Functions: cel.Functions(v.CELFunctions())}
}

func checkFormat(text string) []substitution.Fault {
	return language.Check(text, substitution.Extensions{})
}

func checkHeader(text string) []substitution.Fault {
	return language.CheckHeader(text, substitution.Extensions{})
}

func TestCheck(t *testing.T) {
	hold(t, "testdata/envoy.txt", checkFormat)
	hold(t, "testdata/headers.txt", checkHeader)
}

func hold(t *testing.T, path string, check func(string) []substitution.Fault) {
	for _, v := range envoytest.Verdicts(t, path) {
		if faults := check(v.Text); refusedBy(faults) == v.Taken {
			t.Errorf("%s: %q: %+v, and Envoy takes it: %t", path, v.Text, faults, v.Taken)
		}
	}
}

// TestEnvoy compares the verdicts in testdata, and those for an older version, with real Envoys. envoyapi.TestSince
// asks Envoys about each command.
func TestEnvoy(t *testing.T) {
	for _, v := range envoyapi.Versions {
		t.Run(v.Name, func(t *testing.T) {
			var listeners []map[string]any
			var verdicts []envoytest.Verdict
			try := func(path string, listener func(string) map[string]any, check func(string, substitution.Extensions) []substitution.Fault) {
				for _, verdict := range envoytest.Verdicts(t, path) {
					if v != envoyapi.Latest {
						verdict.Taken = !refusedBy(check(verdict.Text, substitution.Extensions{}))
					}
					listeners, verdicts = append(listeners, listener(verdict.Text)), append(verdicts, verdict)
				}
			}
			try("testdata/headers.txt", addingHeader, languageOf(v).CheckHeader)
			try("testdata/envoy.txt", logging, languageOf(v).Check)
			refused := envoytest.Listeners(t, envoytest.Version(t, v.Name), listeners)
			for i, verdict := range verdicts {
				if _, no := refused[i]; no == verdict.Taken {
					t.Errorf("%q: taken: %t, but Envoy says: %q", verdict.Text, verdict.Taken, refused[i])
				}
			}
		})
	}
}

// TestEnvoyCrashes: Envoy crashes on COALESCE without an object.
func TestEnvoyCrashes(t *testing.T) {
	for _, format := range []string{"%COALESCE(1)%", `%COALESCE("a")%`, "%COALESCE(null)%"} {
		if !refusedBy(checkFormat(format)) {
			t.Errorf("%s: no fault", format)
		}
		code, _ := envoytest.Run(t, envoytest.Options{
			Args: []string{"--mode", "validate"},
			Bootstrap: []byte(`{"static_resources": {"listeners": [{
				"address": {"socket_address": {"address": "127.0.0.1", "port_value": 1}}, "bind_to_port": false,
				"access_log": [{"name": "a", "typed_config": {
					"@type": "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
					"log_format": {"text_format_source": {"inline_bytes": "` + base64.StdEncoding.EncodeToString([]byte(format)) + `"}}}}]}]}}`),
		})
		if code != -1 {
			t.Errorf("%s: Envoy ends with %d, not by a signal", format, code)
		}
	}
}

func logging(format string) map[string]any {
	return map[string]any{
		"filter_chains": []any{map[string]any{}},
		"access_log": []any{map[string]any{"name": "stdout", "typed_config": map[string]any{
			"@type":      "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
			"log_format": map[string]any{"text_format_source": map[string]any{"inline_string": format}},
		}}},
	}
}

func addingHeader(value string) map[string]any {
	return map[string]any{"filter_chains": []any{map[string]any{"filters": []any{map[string]any{
		"name": "hcm",
		"typed_config": map[string]any{
			"@type":       "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			"stat_prefix": "test",
			"route_config": map[string]any{"request_headers_to_add": []any{
				map[string]any{"header": map[string]any{"key": "a", "value": value}},
			}},
			"http_filters": []any{map[string]any{"name": "router", "typed_config": map[string]any{
				"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
			}}},
		},
	}}}}}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ format, message, help string }{
		{"%FOO%", "%FOO%: unknown command", ""},
		{"%RESPONSE_CODES%", "%RESPONSE_CODES%: unknown command", "did you mean %RESPONSE_CODE%?"},
		{"%REQ_WITHOUT_QUERY(a)%", "%REQ_WITHOUT_QUERY(a)%: unknown command", "list envoy.formatter.req_without_query in the formatters beside the format"},
		{"é 100% secret", "the % at character 6 does not begin a command", ""},
		{"a %REQ(:path% secret", "the argument of %REQ at character 3 is not closed with )", ""},
		{"%REQ(a) secret", "the argument of %REQ at character 1 is not followed by % or :LENGTH%", ""},
		{"%REQ(a):secret%", "the argument of %REQ at character 1 is not followed by % or :LENGTH%", ""},
		{"%PROTOCOL:x%", "the length after %PROTOCOL at character 1 is not a number followed by %", ""},
		{"%PROTOCOL secret", "%PROTOCOL at character 1 is not closed with %", ""},
		{"%PROTOCOL(x)%", "%PROTOCOL(x)%: the command supports neither an argument nor a length", "write %PROTOCOL%"},
		{"%CEL(a..b)%", "%CEL(a..b)%: no viable alternative at input '..', at character 3", ""},
		{`%COALESCE({"operators":["PROTOCOL",{"command":"REQ"}]})%`, `%COALESCE({"operators":["PROTOCOL",{"command":"REQ"}]})%: operator 2: the command needs an argument`, ""},
	} {
		faults := checkFormat(c.format)
		if len(faults) != 1 || faults[0].Message != c.message || c.help != "" && faults[0].Help != c.help {
			t.Errorf("%q: %+v, want %q, %q", c.format, faults, c.message, c.help)
		}
	}
	if faults := checkFormat("%FOO% %BAR% %"); len(faults) != 3 {
		t.Errorf("not all faults are found: %+v", faults)
	}
}

func TestExtensions(t *testing.T) {
	for _, c := range []struct {
		format string
		x      substitution.Extensions
		taken  bool
	}{
		{"%REQ_WITHOUT_QUERY(a?b):5% %REQ_WITHOUT_QUERY%", substitution.Extensions{RequestWithoutQuery: true}, true},
		{"%REQ_WITHOUT_QUERY(a?b?c)%", substitution.Extensions{RequestWithoutQuery: true}, false},
		{"%FILE_CONTENT(/a):5% %FILE_CONTENT(/a:/b)%", substitution.Extensions{FileContent: true}, true},
		{"%FILE_CONTENT%", substitution.Extensions{FileContent: true}, false},
		{"%FILE_CONTENT(/a:/b:c)%", substitution.Extensions{FileContent: true}, false},
		{"%SECRET(a):5%", substitution.Extensions{Secrets: []string{"a"}}, true},
		{"%SECRET(b)%", substitution.Extensions{Secrets: []string{"a"}}, false},
		{"%SECRET%", substitution.Extensions{Secrets: []string{"a"}}, false},
		{"%REQUEST_BODY(a:b)%%RESPONSE_BODY%", substitution.Extensions{Bodies: true}, true},
		{"%CEL(string(1))%", substitution.Extensions{CEL: cel.Options{StringConversion: true}}, true},
		{"%ANYTHING(a)%", substitution.Extensions{Unknown: true}, true},
		{"%ANYTHING(a)", substitution.Extensions{Unknown: true}, false},
	} {
		if faults := language.Check(c.format, c.x); (len(faults) == 0) != c.taken {
			t.Errorf("%q with %+v: %+v, taken should be %t", c.format, c.x, faults, c.taken)
		}
	}
}

func TestObsolete(t *testing.T) {
	faults := checkHeader(`%PER_REQUEST_STATE(a)% %UPSTREAM_METADATA( ["a", "b"])%`)
	want := []substitution.Fault{
		{Message: `%UPSTREAM_METADATA( ["a", "b"])% is obsolete`, Help: "write %UPSTREAM_METADATA(a:b)%", Taken: true},
		{Message: "%PER_REQUEST_STATE(a)% is obsolete", Help: "write %FILTER_STATE(a:PLAIN)%", Taken: true},
	}
	if !slices.Equal(faults, want) {
		t.Errorf("got %+v, want %+v", faults, want)
	}
}

func TestCommands(t *testing.T) {
	for format, want := range map[string]int{"": 0, "%BYTES_SENT%": 1, "%%": 1, "a%%b": 1, "%BYTES_SENT%%BYTES_SENT%": 2, "a %BYTES_SENT% b": 3} {
		if got := language.Parts(format, substitution.Extensions{}); got != want {
			t.Errorf("%q: %d parts, want %d", format, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, path := range []string{"testdata/envoy.txt", "testdata/headers.txt"} {
		for _, v := range envoytest.Verdicts(f, path) {
			f.Add(v.Text)
		}
	}
	everything := substitution.Extensions{RequestWithoutQuery: true, FileContent: true, Secrets: []string{"a"}, Bodies: true}
	f.Fuzz(func(t *testing.T, format string) {
		all := len(language.Check(format, everything))
		if n := len(checkFormat(format)); n < all {
			t.Errorf("%d faults with extensions, %d without", all, n)
		}
		if len(format) < all {
			t.Errorf("%d faults in %d bytes", all, len(format))
		}
		checkHeader(format)
	})
}
