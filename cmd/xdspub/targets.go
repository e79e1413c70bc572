package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// targetsSetting is the setting of the kinds of clients that a source tree is published for. No flag has it.
const targetsSetting = "targets"

// target is one of targetsSetting.
type target struct {
	name   string
	client variants.Client
	output string // below --out, unless it is absolute
	// settings are those that are different for this target, by the names of their flags.
	settings map[string]any
}

// The bounds of targets.
const (
	mostTargets     = 1_000
	targetNameBytes = 100
)

// targetKeys are what a target has.
var targetKeys = []string{"params", "authorities", "output", "format", "profile", "envoy-admin"}

// targetName is the form of a name, which is that of a folder, too.
var targetName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// targetReader reads targets, and collects what is wrong in them.
type targetReader struct {
	findings
	ofTree bool // the file stands in the source tree, so that it must not say what is written elsewhere
	dir    string
}

// findings collects what is wrong in a setting.
type findings struct{ wrong diag.List }

func (r *findings) fail(at diag.Position, format string, args ...any) {
	r.wrong = append(r.wrong, diag.Diagnostic{Position: at, Message: fmt.Sprintf(format, args...)})
}

// readTargets reads the setting targets of a file in a folder. It returns what is wrong in it.
func readTargets(s load.Setting, dir string, ofTree bool) ([]target, diag.List) {
	r := targetReader{ofTree: ofTree, dir: dir}
	switch {
	case s.Kind != load.SettingMapping || len(s.Parts) == 0:
		r.fail(s.Position, "targets has one target a line, such as prod-eu: {params: {env: prod, region: eu}}")
		return nil, r.wrong
	case len(s.Parts) > mostTargets:
		r.fail(s.Parts[mostTargets].Position, "there are more than %d targets", mostTargets)
		return nil, r.wrong
	}
	var all []target
	for _, part := range s.Parts {
		t := r.target(part)
		if i := slices.IndexFunc(all, t.overlaps); i >= 0 {
			r.fail(part.Position, "the output %s of target %s is in the way of that of target %s: %s", t.output, t.name, all[i].name, all[i].output)
		}
		all = append(all, t)
	}
	return all, r.wrong
}

// overlaps reports whether the outputs of two targets are one, or one is inside the other, as far as this is
// known before it is known where they are.
func (t target) overlaps(other target) bool {
	if !filepath.IsLocal(t.output) || !filepath.IsLocal(other.output) {
		return false
	}
	a, b := filepath.Join("/", t.output), filepath.Join("/", other.output)
	return fspath.Within(a, b) || fspath.Within(b, a)
}

func (r *targetReader) target(v load.SettingValue) target {
	t := target{name: v.Key, output: v.Key, settings: make(map[string]any)}
	if !targetName.MatchString(v.Key) || len(v.Key) > targetNameBytes {
		r.fail(v.Position, "invalid target %q: its name is that of its folder: letters, digits, -, _ and ., up to %d of them, no - or . first", diag.ClipLine(v.Key, 60), targetNameBytes)
	}
	if v.Kind != load.SettingMapping {
		r.fail(v.Position, "target %s has params, such as {params: {env: prod}}", v.Key)
		return t
	}
	has := false
	for _, field := range v.Parts {
		switch field.Key {
		case "params":
			has, t.client.Parameters = true, r.params(field)
		case "authorities":
			t.client.Authorities = r.authorities(field)
		case "output":
			t.output = r.output(field)
		case "format", "profile", "envoy-admin":
			t.settings[field.Key] = r.setting(field)
		default:
			message := fmt.Sprintf("unknown setting %q of a target: it has params, authorities, output, format, profile and envoy-admin", field.Key)
			if meant := nearest(targetKeys, field.Key); meant != "" {
				message = fmt.Sprintf("unknown setting %q of a target: did you mean %s?", field.Key, meant)
			}
			r.fail(field.Position, "%s", message)
		}
	}
	if !has {
		r.fail(v.Position, "target %s needs params: they say which variants of resources it gets", v.Key)
	}
	return t
}

// params reads what the clients of a target say of themselves.
func (r *targetReader) params(v load.SettingValue) params.Parameters {
	if v.Kind != load.SettingMapping || len(v.Parts) == 0 {
		r.fail(v.Position, "%s has one parameter a line, such as env: prod", v.Key)
		return nil
	}
	p := make(params.Parameters)
	for _, field := range v.Parts {
		switch {
		case field.Kind != load.SettingText:
			r.fail(field.Position, "the parameter %s has one value, a text", field.Key)
		case field.Key == "":
			r.fail(field.Position, "a parameter has a name")
		case len(field.Key) > params.MaxText || len(field.Text) > params.MaxText:
			r.fail(field.Position, "the key and the value of a parameter have %d bytes at most", params.MaxText)
		}
		p[field.Key] = field.Text
	}
	return p
}

// authorities reads what the clients of a target say of themselves where they ask for names of xdstp authorities.
func (r *targetReader) authorities(v load.SettingValue) map[string]params.Parameters {
	if v.Kind != load.SettingMapping || len(v.Parts) == 0 {
		r.fail(v.Position, "authorities has one authority of xdstp names a line, such as a.example: {region: eu}")
		return nil
	}
	all := make(map[string]params.Parameters)
	for _, field := range v.Parts {
		if field.Key == "" || strings.ContainsAny(field.Key, "/?#") {
			r.fail(field.Position, "invalid authority %q: it is what stands between xdstp:// and the next /", diag.ClipLine(field.Key, 60))
		}
		all[field.Key] = r.params(field)
	}
	return all
}

// output reads where a target is published.
func (r *targetReader) output(v load.SettingValue) string {
	switch {
	case v.Kind != load.SettingText || v.Text == "":
		r.fail(v.Position, "output is the path of a folder below --out")
	case r.ofTree && !filepath.IsLocal(v.Text):
		r.fail(v.Position, "output %q leads out of --out, which can't be set in the source tree: whoever changes the tree must not decide what is written outside of it; name a file with this by --config", v.Text)
	default:
		return filepath.Clean(v.Text)
	}
	return v.Text
}

// setting reads one that has a flag.
func (r *targetReader) setting(v load.SettingValue) any {
	s := load.Setting{SettingValue: v, ValueAt: v.Position}
	x, err := setting(settingFlags(), s, r.dir)
	if text, ok := x.(string); ok && err == nil {
		if wants := wants(v.Key, text); wants != "" {
			err = fmt.Errorf("invalid %s %q: %s", v.Key, text, wants)
		}
	}
	if err == nil && r.ofTree && slices.Contains(trusted, v.Key) {
		err = fmt.Errorf("%s of a target can't be set in the source tree: whoever changes the tree must not decide what is asked outside of it; name a file with this by --config", v.Key)
	}
	if err != nil {
		r.wrong = append(r.wrong, diag.Diagnostic{Position: placeOf(s, err), Message: err.Error()})
	}
	return x
}

// targetsSchema returns the schema of the setting.
func targetsSchema() schema {
	text := schema{"type": []string{"string", "number", "boolean"}}
	aboutEach := func(about string, is schema) schema {
		return schema{"description": about, "type": "object", "minProperties": 1, "additionalProperties": is}
	}
	properties := schema{
		"params":      aboutEach("what the clients say of themselves: of a resource with variants they get the one whose constraints match", text),
		"authorities": aboutEach("what they say instead where they ask for names of an xdstp authority, by authority", aboutEach("what they say to this one", text)),
		"output":      schema{"description": "folder below --out (default: the name); any other only in a file that --config names", "type": "string", "minLength": 1},
	}
	for _, f := range settingFlags() {
		if name := f.Names()[0]; slices.Contains(targetKeys, name) {
			properties[name] = settingSchema(f)
		}
	}
	return schema{
		"description": "kinds of clients, by name, that the tree is published for, each in a folder of its own", "type": "object", "minProperties": 1, "maxProperties": mostTargets,
		"propertyNames": schema{"pattern": targetName.String(), "maxLength": targetNameBytes}, "additionalProperties": schema{
			"type": "object", "required": []string{"params"}, "additionalProperties": false, "properties": properties,
		},
	}
}
