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

Envoy compiles and runs each script when it loads the listener or the route, and
refuses what LuaJIT does not read ("script load error: [string …]:1: unexpected symbol
near …"): Lua 5.1 with goto; no integer division, no bit operators, no attributes
such as <const>. A script that fails while it runs, because a function or a module does
not exist, is refused as well; scripts are not run here. A module that is not LuaJIT's own
is looked up on Envoy's machine, below its working directory (./lib/x.lua for lib.x): a
warning. The script of a string
matcher needs a function envoy_match. Scripts in files of Envoy's
machine are not looked at.`,
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
					Help:    "define it: it gets the string and returns whether it matches",
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
			Help:    "Envoy has LuaJIT, which is Lua 5.1 with goto",
		})
	}
	for _, module := range modules {
		if !slices.Contains(p.Envoy.LuaModules(), module) {
			p.Report(validate.Finding{
				Path: path, Warning: true,
				Message: fmt.Sprintf("the Lua script requires %q, which Envoy looks for below its working directory: without it, it refuses the script", module),
				Help:    "write into the script what it takes from there, or bring the file to Envoy's machine",
			})
			return
		}
	}
}
