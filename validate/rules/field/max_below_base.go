package field

import (
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	commondfpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var maxBelowBase = &validate.Rule{
	Code: "max-below-base",
	Doc: `A maximum interval or time is below its base value.

"outlier detector's max_ejection_time cannot be smaller than base_ejection_time": the base
is 30s by default, and without max_ejection_time the maximum is 300s or the base, whichever
is larger. "dns_failure_refresh_rate must have max_interval greater than or equal to the
base_interval": Envoy checks this in clusters that use DNS. It accepts a dynamic forward
proxy with this mistake, and crashes (std::terminate) at its first request. Envoy compares
whole milliseconds.`,
	Messages: []protoreflect.FullName{
		"envoy.config.cluster.v3.Cluster",
		"envoy.config.cluster.v3.OutlierDetection",
		"envoy.extensions.clusters.dns.v3.DnsCluster",
		"envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			if k := p.Envoy.ClusterKindOf(m); k.Factory == "envoy.cluster.strict_dns" || k.Factory == "envoy.cluster.logical_dns" {
				checkRefreshRate(p, n, m.GetDnsFailureRefreshRate())
			}
		case *clusterv3.OutlierDetection:
			checkEjectionTime(p, n, m)
		case *dnsclusterv3.DnsCluster:
			checkRefreshRate(p, n, m.GetDnsFailureRefreshRate())
		case *commondfpv3.DnsCacheConfig:
			checkRefreshRate(p, n, m.GetDnsFailureRefreshRate())
		}
	},
}

// refreshRate is implemented by both forms of the refresh rate of clusters.
type refreshRate interface {
	GetBaseInterval() *durationpb.Duration
	GetMaxInterval() *durationpb.Duration
}

func checkRefreshRate(p *validate.Pass, n *xds.Node, r refreshRate) {
	base, most := r.GetBaseInterval(), r.GetMaxInterval()
	if base != nil && most != nil && milliseconds(most) < milliseconds(base) {
		p.Report(validate.Finding{
			Path:    n.Path().Field("dns_failure_refresh_rate").Field("max_interval"),
			Message: fmt.Sprintf("max_interval %s is below base_interval %s", facts.DurationText(most), facts.DurationText(base)),
			Help:    "raise max_interval to at least base_interval, or remove it: the default is 10 times base_interval",
		})
	}
}

func checkEjectionTime(p *validate.Pass, n *xds.Node, m *clusterv3.OutlierDetection) {
	most := m.GetMaxEjectionTime()
	if most == nil {
		return
	}
	base := m.GetBaseEjectionTime()
	if base == nil {
		base = durationpb.New(30 * time.Second)
	}
	if milliseconds(most) < milliseconds(base) {
		p.Report(validate.Finding{
			Path:    n.Path().Field("max_ejection_time"),
			Message: fmt.Sprintf("max_ejection_time %s is below base_ejection_time %s", facts.DurationText(most), facts.DurationText(base)),
			Help:    "raise max_ejection_time to at least base_ejection_time, which is 30s by default",
		})
	}
}

func milliseconds(d *durationpb.Duration) int64 {
	return d.GetSeconds()*1000 + int64(d.GetNanos())/1e6
}
