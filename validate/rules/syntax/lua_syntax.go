package syntax

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	specifierluav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/router/cluster_specifiers/lua/v3"
	matcherluav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/string_matcher/lua/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/validate/lua"
	"xdspub/xds"
)

var luaSyntax = &validate.Rule{
	Code: "lua-syntax",
	Doc: `A Lua script does not compile.

Envoy compiles and runs each script when it loads the listener or the route, and rejects what
LuaJIT can't read ("script load error: [string …]:1: unexpected symbol near …"): LuaJIT is Lua 5.1
with goto, without integer division, bit operators and attributes such as <const>. It also
rejects a script that fails when it runs, for example because a function or module does not
exist; this rule does not run scripts. Envoy looks up other modules than LuaJIT's on its machine,
below its working directory (./lib/x.lua for lib.x): a warning. The script of a string matcher
needs a function envoy_match. This rule does not read scripts in files on Envoy's machine.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.http.lua.v3.Lua",
		"envoy.extensions.filters.http.lua.v3.LuaPerRoute",
		"envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig",
		"envoy.extensions.string_matcher.lua.v3.Lua",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		check := func(path xds.Path, source *corev3.DataSource) {
			if script, ok := facts.InlineContent(source); ok {
				checkScript(p, n.Path().Join(path), script)
			}
		}
		switch m := n.Message.(type) {
		case *luav3.Lua:
			checkScript(p, n.Path().Field("inline_code"), []byte(m.GetInlineCode()))
			check("default_source_code", m.GetDefaultSourceCode())
			for _, name := range slices.Sorted(maps.Keys(m.GetSourceCodes())) {
				check(xds.Path("source_codes").Key(name), m.GetSourceCodes()[name])
			}
		case *luav3.LuaPerRoute:
			check("source_code", m.GetSourceCode())
		case *specifierluav3.LuaConfig:
			check("source_code", m.GetSourceCode())
		case *matcherluav3.Lua:
			check("source_code", m.GetSourceCode())
			if script, ok := facts.InlineContent(m.GetSourceCode()); ok && lua.Check(script) == nil && !bytes.Contains(script, []byte("envoy_match")) {
				p.Report(validate.Finding{
					Path:    n.Path().Field("source_code"),
					Message: "the Lua script of a string matcher has no function envoy_match",
					Help:    "define envoy_match(string), which returns whether the string matches",
				})
			}
		}
	},
}

func checkScript(p *validate.Pass, path xds.Path, script []byte) {
	modules, err := lua.Modules(script)
	if err != nil {
		p.Report(validate.Finding{
			Path:    path,
			Message: fmt.Sprintf("the Lua script does not compile: %v", err),
			Help:    "write Lua 5.1, with goto: Envoy uses LuaJIT",
		})
	}
	for _, module := range modules {
		if !slices.Contains(p.Envoy.LuaModules(), module) {
			p.Report(validate.Finding{
				Path: path, Warning: true,
				Message: fmt.Sprintf("the Lua script requires %q, which Envoy needs below its working directory", module),
				Help:    "put the code into the script, or install the file on Envoy's machine",
			})
			return
		}
	}
}
