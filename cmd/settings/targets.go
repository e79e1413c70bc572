package settings

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/settingsfile"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// targetsSection is the section of the kinds of clients that a source tree is published for.
const targetsSection = "targets"

// Target is a kind of client that the source tree is published for.
type Target struct {
	Name   string
	Client variants.Client
	Output string // relative to --out, or absolute
	// own has the settings of this target in the settings file.
	own Settings
}

// same reports whether two targets are equal apart from their place in a file.
func (t Target) same(other Target) bool {
	for _, r := range targetRows() {
		if !r.Same(&t.own, &other.own) {
			return false
		}
	}
	return t.Name == other.Name && t.Output == other.Output && reflect.DeepEqual(t.Client, other.Client)
}

// The bounds of targets.
const (
	mostTargets     = 1_000
	targetNameBytes = 100
)

// targetKeys returns the keys that a target can have.
func targetKeys() []string {
	return append([]string{"params", "authorities", "output"}, Names(targetRows())...)
}

// targetRows returns the rows of the settings that may be different for a target.
func targetRows() []Row { return []Row{format(), profile(), envoyAdmin()} }

// targetName matches the name of a target, which is the name of a folder, too.
var targetName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// readTargets reads the section of targets.
func (r *fileReader) readTargets(in settingsfile.Setting) {
	r.settings.Targets = Value[[]Target]{Value: r.targets(in), Origin: Origin{name: in.Key, file: &in}}
}

func (r *fileReader) targets(in settingsfile.Setting) (all []Target) {
	switch {
	case in.Kind != settingsfile.Mapping || len(in.Parts) == 0:
		r.fail(in.Position, "targets has one target a line, such as prod-eu: {params: {env: prod, region: eu}}")
		return nil
	case len(in.Parts) > mostTargets:
		r.fail(in.Parts[mostTargets].Position, "there are more than %d targets", mostTargets)
		return nil
	}
	for _, part := range in.Parts {
		t := r.target(part)
		if i := slices.IndexFunc(all, t.overlaps); i >= 0 {
			r.fail(part.Position, "the output %s of target %s overlaps the output of target %s: %s", t.Output, t.Name, all[i].Name, all[i].Output)
		}
		all = append(all, t)
	}
	return all
}

// overlaps reports whether two targets have equal or nested outputs. overlaps returns false for an output
// outside of --out.
func (t Target) overlaps(other Target) bool {
	if !filepath.IsLocal(t.Output) || !filepath.IsLocal(other.Output) {
		return false
	}
	a, b := filepath.Join("/", t.Output), filepath.Join("/", other.Output)
	return fspath.Within(a, b) || fspath.Within(b, a)
}

func (r *fileReader) target(v settingsfile.Value) Target {
	t := Target{Name: v.Key, Output: v.Key}
	if !targetName.MatchString(v.Key) || len(v.Key) > targetNameBytes {
		r.fail(v.Position, "invalid target %q: the name is also the name of a folder: write up to %d letters, digits, -, _ and ., "+
			"and begin with none of - and .", diag.ClipLine(v.Key, 60), targetNameBytes)
	}
	if v.Kind != settingsfile.Mapping {
		r.fail(v.Position, "target %s has params, such as {params: {env: prod}}", v.Key)
		return t
	}
	has := false
	for _, field := range v.Parts {
		switch field.Key {
		case "params":
			has, t.Client.Parameters = true, r.params(field)
		case "authorities":
			t.Client.Authorities = r.authorities(field)
		case "output":
			t.Output = r.output(field)
		default:
			if i := slices.IndexFunc(targetRows(), func(row Row) bool { return row.Name() == field.Key }); i >= 0 {
				r.ofTarget(&t, targetRows()[i], field)
				continue
			}
			r.fail(field.Position, "%s", unknownKey(field.Key, "of a target", targetKeys(), "params, authorities, output, format, profile and envoy-admin"))
		}
	}
	if !has {
		r.fail(v.Position, "target %s needs params: they say which variants of resources it gets", v.Key)
	}
	return t
}

// params reads the dynamic parameters of the clients of a target.
func (r *fileReader) params(v settingsfile.Value) params.Parameters {
	if v.Kind != settingsfile.Mapping || len(v.Parts) == 0 {
		r.fail(v.Position, "%s has one parameter a line, such as env: prod", v.Key)
		return nil
	}
	p := make(params.Parameters)
	for _, field := range v.Parts {
		switch {
		case field.Kind != settingsfile.Text:
			r.fail(field.Position, "the parameter %s has one value, a text", field.Key)
		case field.Key == "":
			r.fail(field.Position, "a parameter needs a name before the colon")
		case len(field.Key) > params.MaxText || len(field.Text) > params.MaxText:
			r.fail(field.Position, "the key and the value of a parameter have %d bytes at most", params.MaxText)
		}
		p[field.Key] = field.Text
	}
	return p
}

// authorities reads the dynamic parameters with which the clients of a target ask for names of xdstp
// authorities.
func (r *fileReader) authorities(v settingsfile.Value) map[string]params.Parameters {
	if v.Kind != settingsfile.Mapping || len(v.Parts) == 0 {
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

// output reads the output directory of a target.
func (r *fileReader) output(v settingsfile.Value) string {
	switch {
	case v.Kind != settingsfile.Text || v.Text == "":
		r.fail(v.Position, "output is the path of a folder below --out")
	case r.file.ofTree && !filepath.IsLocal(v.Text):
		r.fail(v.Position, "output %q leads out of --out, which can't be set in the source tree: whoever changes the tree must "+
			"not decide what is written outside of it; write it into a file that --config names", v.Text)
	default:
		return filepath.Clean(v.Text)
	}
	return v.Text
}

// ofTarget reads a setting of one target.
func (r *fileReader) ofTarget(t *Target, row Row, v settingsfile.Value) {
	in := settingsfile.Setting{Value: v, ValueAt: v.Position}
	err := row.readFile(&t.own, in, file{dir: r.file.dir})
	if err == nil && row.Outside() && r.file.ofTree {
		err = fmt.Errorf("%s of a target can't be set in the source tree: whoever changes the tree must not decide what is asked "+
			"outside of it; write it into a file that --config names", v.Key)
	}
	if err != nil {
		r.fail(placeOf(in, err), "%s", err)
	}
}

// OfTarget returns a copy of s for a target: with the target's own settings, and with Out and EnvoyPath of the
// target.
func (s *Settings) OfTarget(t Target) *Settings {
	of := *s
	of.Out.Value = s.OutOf(t)
	for _, r := range targetRows() {
		r.take(&of, &t.own)
	}
	if path := s.EnvoyPath.Value; path != "" {
		of.EnvoyPath.Value = filepath.ToSlash(filepath.Join(path, t.Output))
	}
	return &of
}

// OutOf returns the output directory of a target. Without --out the directory has no meaning, because no
// command writes there.
func (s *Settings) OutOf(t Target) string {
	if filepath.IsAbs(t.Output) {
		return t.Output
	}
	return filepath.Join(s.Out.Value, t.Output)
}

// targetsSchema returns the schema of the setting.
func targetsSchema() Schema {
	text := Schema{"type": []string{"string", "number", "boolean"}}
	aboutEach := func(about string, is Schema) Schema {
		return Schema{"description": about, "type": "object", "minProperties": 1, "additionalProperties": is}
	}
	properties := Schema{
		"params": aboutEach("what the clients say of themselves: of a resource with variants they get the one whose constraints match", text),
		"authorities": aboutEach("what they say instead where they ask for names of an xdstp authority, "+
			"by authority", aboutEach("what they say to this one", text)),
		"output": Schema{"description": "folder below --out (default: the name); any other only in a file that " +
			"--config names", "type": "string", "minLength": 1},
	}
	for _, r := range targetRows() {
		properties[r.Name()] = r.schema()
	}
	return Schema{
		"description": "kinds of clients, by name, that the tree is published for, each in a " +
			"folder of its own", "type": "object", "minProperties": 1, "maxProperties": mostTargets,
		"propertyNames": Schema{"pattern": targetName.String(), "maxLength": targetNameBytes}, "additionalProperties": Schema{
			"type": "object", "required": []string{"params"}, "additionalProperties": false, "properties": properties,
		},
	}
}
