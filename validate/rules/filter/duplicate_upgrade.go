package filter

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var duplicateUpgrade = &validate.Rule{
	Code: "duplicate-upgrade",
	Doc: `A list has a duplicate upgrade type.

Envoy rejects the route ("Duplicate upgrade websocket") or the listener ("multiple upgrade configs
with the same name"). It ignores case here. A route may repeat an upgrade of its connection manager.`,
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.RouteAction",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *routev3.RouteAction:
			checkUpgrades(p, n, m.GetUpgradeConfigs())
		case *hcmv3.HttpConnectionManager:
			checkUpgrades(p, n, m.GetUpgradeConfigs())
		}
	},
}

func checkUpgrades[U interface{ GetUpgradeType() string }](p *validate.Pass, n *xds.Node, upgrades []U) {
	first := make(map[string]int)
	for i, upgrade := range upgrades {
		path := n.Path().Field("upgrade_configs")
		key := strings.ToLower(upgrade.GetUpgradeType())
		if at, twice := first[key]; twice {
			p.Report(validate.Finding{
				Path:    path.Index(i).Field("upgrade_type"),
				Message: fmt.Sprintf("duplicate upgrade %q", upgrade.GetUpgradeType()),
				Help:    "remove one of them; Envoy ignores case here",
				Related: facts.Related(p.Resource, path.Index(at).Field("upgrade_type"), "the first one is here"),
			})
			continue
		}
		first[key] = i
	}
}
