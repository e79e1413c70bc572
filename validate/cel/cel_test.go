package cel_test

import (
	"slices"
	"strings"
	"testing"

	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/encoding/protojson"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
	"xdspub/validate/cel"
)

// functions are the functions of the Envoy that has judged testdata/envoy.txt.
var functions = cel.Functions(envoyapi.Latest.CELFunctions())

func TestCheck(t *testing.T) {
	for _, v := range envoytest.Verdicts(t, "testdata/envoy.txt") {
		err := cel.Check(v.Text, cel.Options{Functions: functions})
		if (err == nil) != v.Taken {
			t.Errorf("%q: %v, and Envoy takes it: %t", v.Text, err, v.Taken)
		}
	}
}

// TestEnvoy compares testdata/envoy.txt, and the verdicts for an older version, with real Envoys.
// envoyapi.TestSince asks Envoys about each function.
func TestEnvoy(t *testing.T) {
	for _, v := range envoyapi.Versions {
		t.Run(v.Name, func(t *testing.T) {
			verdicts := envoytest.Verdicts(t, "testdata/envoy.txt")
			if v != envoyapi.Latest {
				verdicts = slices.DeleteFunc(verdicts, func(verdict envoytest.Verdict) bool {
					return !strings.ContainsAny(verdict.Text, "`{\\")
				})
			}
			listeners := make([]map[string]any, len(verdicts))
			for i, verdict := range verdicts {
				if v != envoyapi.Latest {
					verdicts[i].Taken = cel.Check(verdict.Text, cel.Options{Functions: cel.Functions(v.CELFunctions())}) == nil
				}
				listeners[i] = filtering(verdict.Text)
			}
			refused := envoytest.Listeners(t, envoytest.Version(t, v.Name), listeners)
			for i, verdict := range verdicts {
				if _, no := refused[i]; no == verdict.Taken {
					t.Errorf("%q: taken: %t, but Envoy says: %q", verdict.Text, verdict.Taken, refused[i])
				}
			}
		})
	}
}

// filtering returns a listener with an access log that an expression filters.
func filtering(expression string) map[string]any {
	return map[string]any{
		"filter_chains": []any{map[string]any{}},
		"access_log": []any{map[string]any{
			"filter": map[string]any{"extension_filter": map[string]any{"name": "cel", "typed_config": map[string]any{
				"@type":      "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
				"expression": expression,
			}}},
			"name":         "stdout",
			"typed_config": map[string]any{"@type": "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"},
		}},
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"request..path", "no viable alternative at input '..', at character 9"},
		{"a ==", "mismatched input the end, at character 5"},
		{"foo(1)", `unknown function "foo"`},
		{"a.size(b)", "size does not accept these arguments (1)"},
		{"string(1)", "string() needs enable_string_conversion in a cel_config"},
		{"a.trim()", "trim() needs enable_string_functions in a cel_config"},
		{"[1].exists(x, x == 1)", "comprehensions (all, exists, exists_one, filter, map) are disabled"},
		{`a.matches("(")`, "invalid regular expression in matches(): missing closing ): `(`"},
	} {
		if err := cel.Check(c.text, cel.Options{Functions: functions}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		text    string
		options cel.Options
	}{
		{"string(1)", cel.Options{Functions: functions, StringConversion: true}},
		{`a.lowerAscii().split(",").join() + strings.quote(a)`, cel.Options{Functions: functions, StringFunctions: true}},
	} {
		if cel.Check(c.text, cel.Options{Functions: functions}) == nil {
			t.Errorf("%s: taken without options", c.text)
		}
		if err := cel.Check(c.text, c.options); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestCheckExpr(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"callExpr": {"function": "_==_", "args": [{"constExpr": {"int64Value": "1"}}, {"identExpr": {"name": "a"}}]}}`, ""},
		{`{"callExpr": {"function": "_[_]", "target": {"identExpr": {"name": "a"}}, "args": [{"constExpr": {"int64Value": "1"}}]}}`, ""},
		{`{}`, "an empty expression"},
		{`{"constExpr": {}}`, "a constant without a value"},
		{`{"identExpr": {}}`, "an identifier without a name"},
		{`{"selectExpr": {"field": "a"}}`, "a selection without an operand"},
		{`{"selectExpr": {"operand": {"identExpr": {"name": "a"}}}}`, "a selection without a field"},
		{`{"comprehensionExpr": {}}`, "comprehensions (all, exists, exists_one, filter, map) are disabled"},
		{`{"callExpr": {"function": "!_"}}`, "!_ does not accept these arguments (0)"},
		{`{"listExpr": {"elements": [{}]}}`, "an empty expression"},
		{`{"structExpr": {"entries": [{"mapKey": {"constExpr": {}}, "value": {}}]}}`, "a constant without a value"},
	} {
		var e exprpb.Expr
		if err := protojson.Unmarshal([]byte(c.json), &e); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := cel.CheckExpr(&e, cel.Options{Functions: functions}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.json, got, c.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, v := range envoytest.Verdicts(f, "testdata/envoy.txt") {
		f.Add(v.Text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_ = cel.Check(text, cel.Options{Functions: functions, StringConversion: true, StringFunctions: true})
	})
}
