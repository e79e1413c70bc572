package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"xdspub/check"
	"xdspub/check/policy"
	"xdspub/cmd/codes"
	"xdspub/diag"
	"xdspub/watch/part"
)

// Schema is a JSON Schema, or a part of one.
type Schema map[string]any

// FileSchema returns the schema of a settings file. The schema rejects what xdspub rejects, as far as a schema
// can. If a value can be written in several ways, the schema accepts only the plainest: true, not "yes".
func FileSchema() Schema {
	properties := make(Schema)
	for _, s := range sections() {
		properties[s.name] = s.schema()
	}
	for _, r := range Settable() {
		properties[r.Name()] = r.schema()
	}
	off := []any{"on", "off", true, false} // YAML 1.1 reads on and off as true and false
	severities := slices.Clone(off)
	for _, word := range policy.Levels {
		if !slices.Contains(off, any(word)) {
			severities = append(severities, word)
		}
	}
	return Schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "settings of xdspub",
		"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false,
		"$defs": Schema{"rule": Schema{"enum": diag.Names(codes.Rules())}, "severity": Schema{"enum": severities}, "switch": Schema{"enum": off}},
	}
}

func severitiesSchema() Schema {
	rules := make(Schema)
	changes := diag.Names(codes.Changes())
	for _, code := range diag.WithSubCodes(codes.Rules()) {
		level := "#/$defs/severity"
		if slices.Contains(changes, code.Name) {
			level = "#/$defs/switch"
		}
		rules[code.Name] = Schema{"$ref": level, "description": code.Summary()}
	}
	return Schema{"description": "severities of rules", "type": "object", "properties": rules, "additionalProperties": false}
}

func overridesSchema() Schema {
	return Schema{"description": "severities of rules in some files; of two about one finding the later one counts", "type": "array", "items": Schema{
		"type": "object", "required": []string{"files", "rules"}, "additionalProperties": false, "properties": Schema{
			"files": filesSchema(),
			"rules": Schema{"description": "severities of rules " +
				"in these files", "type": "object", "additionalProperties": Schema{"$ref": "#/$defs/severity"},
				"propertyNames": Schema{"$ref": "#/$defs/rule", "not": Schema{"enum": diag.Names(codes.Changes())}}},
		},
	}}
}

func filesSchema() Schema {
	return textOrList(Schema{
		"type": "string", "minLength": 1,
		"not": Schema{"pattern": `^/*$|^/*\.\.?(/|$)|/\.\.?(/|$)|[^/]//+[^/]`},
	}, 1, "glob patterns of files, by name or, with a /, by path in the tree")
}

// ownersSchema returns the schema of the folders that own their resources.
func ownersSchema() Schema {
	return textOrList(Schema{
		"type": "string", "minLength": 1, "not": Schema{"pattern": `^/|/$|//|(^|/)\.\.?(/|$)|\*\*`},
	}, 1, "glob patterns of folders that stand for themselves, such as the folders of teams: an error in one of them does not hold the others")
}

// whenSchema returns the schema of the constraints that select the clients of files.
func whenSchema() Schema {
	text := Schema{"type": "string", "maxLength": 1024}
	value := []Schema{text, {"type": "array", "items": text, "minItems": 1}}
	not := Schema{"type": "object", "required": []string{"not"}, "additionalProperties": false, "properties": Schema{"not": Schema{"anyOf": value}}}
	params := Schema{
		"description": "dynamic parameters: a text, a list of which the value is one, exists, absent, or {not: …}", "type": "object", "minProperties": 1,
		"propertyNames": Schema{"minLength": 1, "maxLength": 1024}, "additionalProperties": Schema{"anyOf": append(value, not)},
	}
	some := Schema{
		"type": "object", "required": []string{"files", "params"}, "additionalProperties": false,
		"properties": Schema{"files": filesSchema(), "params": params},
	}
	return Schema{
		"description": "the clients that the files of this folder and below are for; in a folder below the root of the tree the only setting",
		"anyOf":       []Schema{params, {"type": "array", "items": some, "minItems": 1}},
	}
}

// schema returns the schema of a setting.
func (r *setting[T]) schema() Schema {
	about := strings.ReplaceAll(r.usage, "`", "")
	if r.outside {
		about += " (only in a file that --config names)"
	}
	s := r.kind.form(r)
	if r.form != nil {
		s = r.form()
	}
	if r.kind.repeats {
		return textOrList(s, 0, about)
	}
	s["description"] = about
	if value := r.SchemaDefault(); value != nil {
		s["default"] = value
	}
	return s
}

// SchemaDefault returns the default of a setting; nil for none.
func (r *setting[T]) SchemaDefault() any {
	if r.kind.def == nil {
		return nil
	}
	return r.kind.def(r)
}

// textOrList returns the schema of one item, or of a list of at least least items.
func textOrList(item Schema, least int, about string) Schema {
	return Schema{"description": about, "anyOf": []Schema{item, {"type": "array", "items": item, "minItems": least}}}
}

func percentSchema() Schema { return Schema{"type": "integer", "minimum": 0, "maximum": 100} }

func countSchema(r *setting[int]) Schema {
	least := 0
	for r.wants(least) != "" {
		least++
	}
	return Schema{"type": "integer", "minimum": least}
}

// timeSchema returns the schema of a time such as 500ms.
func timeSchema(r *setting[time.Duration]) Schema {
	s := Schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	if r.wants(0) != "" {
		s["not"] = Schema{"pattern": "^[^1-9]*$"}
	}
	return s
}

// textSchema returns the schema of a text. If the usage lists words, the text must be one of the words.
func textSchema[T any](r *setting[T]) Schema {
	if words := Choices(Placeholder(r.usage)); words != nil {
		return Schema{"enum": words}
	}
	return Schema{"type": []string{"string", "integer"}}
}

func quorumSchema() Schema {
	return Schema{"anyOf": []Schema{{"enum": []string{"all", "any", NoQuorum}}, {"type": "integer", "minimum": 1}}}
}

func absoluteSchema() Schema { return Schema{"type": "string", "pattern": "^/"} }

func paramSchema() Schema { return Schema{"type": "string", "pattern": "^[^=]+="} }

func ruleSchema() Schema { return Schema{"$ref": "#/$defs/rule"} }

// partSchema returns the schema of an element of --while-refused.
func partSchema() Schema { return Schema{"type": "string", "enum": part.Names()} }

// releaseSchema returns the schema of a release of Envoy. Without quotes, YAML reads 1.40 as a number.
func releaseSchema() Schema {
	var names []any
	for _, name := range check.EnvoyReleases() {
		names = append(names, name, json.Number(name))
	}
	patches := fmt.Sprintf(`^(%s)\.[0-9]+$`, strings.ReplaceAll(strings.Join(check.EnvoyReleases(), "|"), ".", `\.`))
	return Schema{"anyOf": []Schema{{"enum": names}, {"type": "string", "pattern": patches}}}
}
