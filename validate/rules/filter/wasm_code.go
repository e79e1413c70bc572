package filter

import (
	"bytes"
	"fmt"

	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

const (
	wasmV8   = "envoy.wasm.runtime.v8"
	wasmNull = "envoy.wasm.runtime.null"
)

var wasmCode = &validate.Rule{
	Code: "wasm-code",
	Doc: `The code of a Wasm plugin is missing or can't run.

Envoy rejects the listener ("Unable to create Wasm plugin a") if the code is missing or empty,
is not a module of the proxy-wasm ABI ("Missing or unknown Proxy-Wasm ABI version"), or needs a
runtime that the released binary does not have. It has envoy.wasm.runtime.v8, and
envoy.wasm.runtime.null without any plugin. failure_policy FAIL_OPEN makes no difference.
Remote code fails when it arrives. This rule does not check remote code and code in files on
Envoy's machine.`,
	Checks: []diag.Check{
		{Name: "no-code", Summary: "A Wasm plugin, or its code, is missing."},
		{Name: "no-module", Summary: "The code is not a module of the proxy-wasm ABI."},
		{Name: "runtime", Summary: "The released Envoy has no such runtime, or no plugin for it."},
	},
	Messages: []protoreflect.FullName{
		"envoy.extensions.access_loggers.wasm.v3.WasmAccessLog",
		"envoy.extensions.filters.http.wasm.v3.Wasm",
		"envoy.extensions.filters.network.wasm.v3.Wasm",
		"envoy.extensions.wasm.v3.PluginConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		m, ok := n.Message.(*wasmv3.PluginConfig)
		if !ok {
			if n.Message.(interface{ GetConfig() *wasmv3.PluginConfig }).GetConfig() == nil {
				p.Report(validate.Finding{Check: "no-code", Path: n.Path(), Message: "the filter has no Wasm plugin", Help: "set config"})
			}
			return
		}
		wrong := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		vm := m.GetVmConfig()
		code, inline := facts.InlineContent(vm.GetCode().GetLocal())
		switch runtime := vm.GetRuntime(); {
		case vm.GetCode() == nil || inline && len(code) == 0:
			wrong("no-code", "", fmt.Sprintf("Wasm plugin %q has no code", m.GetName()), "set vm_config.code")
		case runtime != "" && runtime != wasmV8 && runtime != wasmNull:
			p.Report(validate.Finding{
				Check:   "runtime",
				Path:    n.Path().Join("vm_config.runtime"),
				Message: fmt.Sprintf("the released Envoy has no runtime %q", runtime),
				Help:    "use " + wasmV8,
				Warning: vm.GetCode().GetRemote() != nil, // Envoy fetches remote code first, and refuses the runtime later
			})
		case inline && runtime == wasmNull:
			wrong("runtime", "vm_config.code", "the released Envoy has no built-in plugin for "+wasmNull, "use "+wasmV8+" and a module")
		case inline && !bytes.Contains(code, []byte("proxy_abi_version_")):
			wrong("no-module", "vm_config.code", "the code is not a module of the proxy-wasm ABI", "build it with a proxy-wasm SDK")
		}
	},
}
