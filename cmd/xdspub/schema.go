package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/check/codes"
	"xdspub/check/policy"
	"xdspub/diag"
	"xdspub/source/load"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print a JSON Schema of xdspub.yaml, for an editor",
		Description: `An editor with the YAML language server takes it by a comment in xdspub.yaml:
  # yaml-language-server: $schema=xdspub.schema.json

Example:
  xdspub schema > config/.xdspub.schema.json`,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("schema takes no arguments")
			}
			return writeSchema(c.App.Writer)
		},
	}
}

// schema is one of JSON, or a part of it.
type schema map[string]any

func writeSchema(w io.Writer) error { return writeJSON(w, settingsSchema()) }

// settingsSchema returns the schema of a settings file. It takes nothing that is refused, as far as a
// schema can tell, and asks for the plain form where there are several: true, not "yes".
func settingsSchema() schema {
	rules := make(schema)
	for _, code := range diag.WithSubCodes(codes.Rules()) {
		rules[code.Name] = schema{"$ref": "#/$defs/severity", "description": code.Summary()}
	}
	changes := diag.Names(codes.Changes())
	for _, name := range changes {
		rules[name].(schema)["$ref"] = "#/$defs/switch"
	}
	files := textOrList(schema{"type": "string", "minLength": 1, "not": schema{"pattern": `^/*$|^/*\.\.?(/|$)|/\.\.?(/|$)|[^/]//+[^/]`}}, 1, "glob patterns of files, by name or, with a /, by path in the tree")
	properties := schema{
		load.WhenSetting: whenSchema(files),
		rulesSetting:     schema{"description": "severities of rules", "type": "object", "properties": rules, "additionalProperties": false},
		overridesSetting: schema{"description": "severities of rules in some files; of two about one finding the later one counts", "type": "array", "items": schema{
			"type": "object", "required": []string{"files", "rules"}, "additionalProperties": false, "properties": schema{
				"files": files,
				"rules": schema{"description": "severities of rules in these files", "type": "object", "additionalProperties": schema{"$ref": "#/$defs/severity"}, "propertyNames": schema{"$ref": "#/$defs/rule", "not": schema{"enum": changes}}},
			},
		}},
	}
	properties[targetsSetting] = targetsSchema()
	for _, f := range settingFlags() {
		properties[f.Names()[0]] = settingSchema(f)
	}
	off := []any{"on", "off", true, false} // on and off are true and false to YAML 1.1
	severities := slices.Clone(off)
	for _, word := range policy.Levels {
		if !slices.Contains(off, any(word)) {
			severities = append(severities, word)
		}
	}
	return schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "settings of xdspub",
		"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false,
		"$defs": schema{"rule": schema{"enum": diag.Names(codes.Rules())}, "severity": schema{"enum": severities}, "switch": schema{"enum": off}},
	}
}

// whenSchema returns that of the clients that files are for.
func whenSchema(files schema) schema {
	text := schema{"type": "string", "maxLength": 1024}
	value := []schema{text, {"type": "array", "items": text, "minItems": 1}}
	not := schema{"type": "object", "required": []string{"not"}, "additionalProperties": false, "properties": schema{"not": schema{"anyOf": value}}}
	params := schema{
		"description": "dynamic parameters: a text, a list of which the value is one, exists, absent, or {not: …}", "type": "object", "minProperties": 1,
		"propertyNames": schema{"minLength": 1, "maxLength": 1024}, "additionalProperties": schema{"anyOf": append(value, not)},
	}
	some := schema{
		"type": "object", "required": []string{"files", "params"}, "additionalProperties": false,
		"properties": schema{"files": files, "params": params},
	}
	return schema{
		"description": "the clients that the files of this folder and below are for; in a folder below the root of the tree the only setting",
		"anyOf":       []schema{params, {"type": "array", "items": some, "minItems": 1}},
	}
}

// settingSchema returns that of a setting with a flag.
func settingSchema(f cli.Flag) schema {
	name := f.Names()[0]
	about := strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", "")
	if slices.Contains(trusted, name) {
		about += " (only in a file that --config names)"
	}
	if _, list := f.(*cli.StringSliceFlag); list {
		return textOrList(valueSchema(f), 0, about)
	}
	s := valueSchema(f)
	s["description"] = about
	if value := settingDefault(f); value != nil {
		s["default"] = value
	}
	return s
}

// textOrList returns the schema of one value, or of a list.
func textOrList(item schema, least int, about string) schema {
	return schema{"description": about, "anyOf": []schema{item, {"type": "array", "items": item, "minItems": least}}}
}

// settingDefault returns the value of a flag that is not given, nil for none.
func settingDefault(f cli.Flag) any {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return f.Value
	case *cli.IntFlag:
		return f.Value
	case *cli.DurationFlag:
		if f.DefaultText == "" {
			return f.Value.String()
		}
	case *cli.StringFlag:
		if f.Value != "" {
			return f.Value
		}
	}
	return nil
}

// valueSchema returns that of the value of a flag, or of one of its values.
func valueSchema(f cli.Flag) schema {
	name := f.Names()[0]
	switch f.(type) {
	case *cli.BoolFlag:
		return schema{"type": "boolean"}
	case *cli.IntFlag:
		least := 0
		for wants(name, least) != "" {
			least++
		}
		return schema{"type": "integer", "minimum": least}
	case *cli.DurationFlag:
		return timeSchema(name)
	case *cli.PathFlag:
		return schema{"type": "string"}
	}
	words := enum(placeholder(f))
	switch {
	case name == "envoy-version":
		return releaseSchema()
	case name == "ack-quorum":
		return schema{"anyOf": []schema{{"enum": append(words, noQuorum)}, {"type": "integer", "minimum": 1}}}
	case name == "envoy-path":
		return schema{"type": "string", "pattern": "^/"}
	case name == "param":
		return schema{"type": "string", "pattern": "^[^=]+="}
	case name == "disable" || name == "enable":
		return schema{"$ref": "#/$defs/rule"}
	case words != nil:
		return schema{"enum": words}
	}
	return schema{"type": []string{"string", "integer"}}
}

// timeSchema returns that of a time such as 500ms.
func timeSchema(name string) schema {
	s := schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	if wants(name, time.Duration(0)) != "" {
		s["not"] = schema{"pattern": "^[^1-9]*$"}
	}
	return s
}

// releaseSchema returns that of a release of Envoy. To YAML 1.40 is a number.
func releaseSchema() schema {
	var names []any
	for _, name := range check.EnvoyReleases() {
		names = append(names, name, json.Number(name))
	}
	patches := fmt.Sprintf(`^(%s)\.[0-9]+$`, strings.ReplaceAll(strings.Join(check.EnvoyReleases(), "|"), ".", `\.`))
	return schema{"anyOf": []schema{{"enum": names}, {"type": "string", "pattern": patches}}}
}
