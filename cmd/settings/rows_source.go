package settings

import (
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/cmd/codes"
	"xdspub/diag"
	"xdspub/source/syntax"
)

// Source returns the rows about how a source tree is read and judged. The first row is --config.
func Source() []Row {
	return []Row{
		config(), ignore(), allowPath(),
		&setting[string]{about: about{name: "bootstrap", group: GroupSource, usage: "Envoy's bootstrap `FILE`: resources of the " +
			"tree may refer to its static resources", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Bootstrap }},
		descriptorSet(),
		&setting[bool]{about: about{name: "allow-empty", group: GroupSource, usage: "allow a source tree with no resources; " +
			"publishing it removes every listener and cluster from Envoy"},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.AllowEmpty }},
		param(),
		profile(),
		&setting[[]string]{about: about{name: "envoy-version", group: GroupRules, usage: "judge for Envoys of " +
			"this version: `" + strings.Join(check.EnvoyReleases(), "|") + "`; if you repeat the option, a feature that one of the " +
			"versions lacks is an error (default: the latest)"},
			kind: list, form: releaseSchema, into: func(s *Settings) *Value[[]string] { return &s.EnvoyVersion }},
		&setting[[]string]{about: about{name: "disable", group: GroupRules, usage: "turn off `RULE`", codes: codes.Rules},
			kind: list, form: ruleSchema, into: func(s *Settings) *Value[[]string] { return &s.Disable }},
		&setting[[]string]{about: about{name: "enable", group: GroupRules, usage: "turn on `RULE`, which is off by default", codes: optIn},
			kind: list, form: ruleSchema, into: func(s *Settings) *Value[[]string] { return &s.Enable }},
		&setting[bool]{about: about{name: "warnings-as-errors", group: GroupRules, usage: "treat warnings as errors: exit status 1, and nothing is published"},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.WarningsAsErrors }},
	}
}

// descriptorSet returns the row of --descriptor-set.
func descriptorSet() Row {
	return &setting[[]string]{about: about{name: "descriptor-set", group: GroupSource, usage: "know the message types of your own " +
		"extensions by `FILE`, which protoc --include_imports --descriptor_set_out or buf build -o makes"},
		kind: filePaths, into: func(s *Settings) *Value[[]string] { return &s.DescriptorSet }}
}

// param returns the row of --param.
func param() Row {
	return &setting[[]string]{about: about{name: "param", group: GroupSource,
		usage: "a dynamic parameter `KEY=VALUE` of the client: it selects the variants that the client gets " +
			"(default: no parameters; validate and serve: any client)"},
		kind: list, form: paramSchema, into: func(s *Settings) *Value[[]string] { return &s.Param }}
}

// target returns the row of --target.
func target() Row {
	return &setting[[]string]{about: about{name: "target", group: GroupSource, usage: "only the target `NAME` of the setting targets (default: all of them)"},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.Target }}
}

// The values of --envoy-mode.
const (
	ModeValidate = "validate"
	ModeShadow   = "shadow"
)

// oracle returns the rows about the Envoy that judges resources. Because they name a program to run, only the
// command line can set them: they have no variables, and a settings file can't have them.
func oracle() []Row {
	return []Row{
		&setting[string]{about: about{name: "envoy", group: GroupRules,
			usage: "have the Envoy `FILE|auto` judge each resource in which no rule finds an error; auto: the envoy in " +
				"PATH", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Envoy }},
		&setting[string]{about: about{name: "envoy-mode", group: GroupRules,
			usage: "how --envoy judges: `validate|shadow`; validate: by Envoy's --mode validate; shadow: also by an " +
				"Envoy that loads the files and opens no port", noVariable: true},
			kind: text, byDefault: ModeValidate, law: oneOfWords(ModeValidate, ModeShadow), into: func(s *Settings) *Value[string] { return &s.EnvoyMode }},
	}
}

// stdinFormat returns the row of --stdin-format.
func stdinFormat() Row {
	return &setting[string]{about: about{name: "stdin-format", group: GroupSource, usage: "format of standard input, if a " +
		"path is -: `" + strings.Join(syntax.Formats, "|") + "`", noVariable: true},
		kind: text, byDefault: "yaml", law: oneOfWords(syntax.Formats...), into: func(s *Settings) *Value[string] { return &s.StdinFormat }}
}

// optIn returns the rules that are off by default.
func optIn() (off []diag.Code) {
	names := check.OptIn()
	for _, code := range codes.All() {
		if slices.Contains(names, code.Name) {
			off = append(off, code)
		}
	}
	return off
}

func config() Row {
	return &setting[string]{about: about{name: "config", group: GroupSource, usage: "read settings from `FILE` (default: xdspub.yaml in the source tree)"},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.Config }}
}

func ignore() Row {
	return &setting[[]string]{about: about{name: "ignore", group: GroupSource, usage: "skip files and folders of the tree that " +
		"match the glob `PATTERN`: by name, or, if it has a /, by path in the tree"},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.Ignore }}
}

func allowPath() Row {
	return &setting[[]string]{about: about{name: "allow-path", group: GroupSource, usage: "allow links and relative paths of the " +
		"tree to lead into `DIR`, which is outside of it", outside: true},
		kind: filePaths, into: func(s *Settings) *Value[[]string] { return &s.AllowPath }}
}

func profile() Row {
	return &setting[[]string]{about: about{name: "profile", group: GroupRules, usage: "judge for clients of " +
		"this kind: `" + strings.Join(check.Profiles(), "|") + "` (default: envoy-ads for serve and bootstrap envoy, grpc for " +
		"bootstrap grpc, else envoy-file; envoy-file is always one with --out)"},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.Profile }}
}
