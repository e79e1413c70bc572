package settings

import (
	"strings"
	"time"

	"xdspub/source/upstream"
)

// Schemes of a source that is no source tree.
const (
	XDS     = "xds://"    // HOST:PORT[,HOST:PORT]
	XDSUnix = "xds+unix:" // PATH
)

// IsRemote reports whether a source is a control plane or a store, and not a path.
func IsRemote(source string) bool {
	return IsStore(source) || strings.HasPrefix(source, XDS) || strings.HasPrefix(source, XDSUnix)
}

// Upstream returns the rows about the connection to a control plane that is the source. Only the
// command line and the environment can set them, not a settings file.
func Upstream() []Row {
	return rows(
		&setting[string]{about: about{name: "node-from", group: GroupUpstream, usage: "identify as the Envoy with the bootstrap `FILE`: its node, and the " +
			"names of its runtime layers (required without --node-id)"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.NodeFrom }},
		&setting[string]{about: about{name: "node-id", group: GroupUpstream, usage: "node `ID` for the control plane"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.NodeID }},
		&setting[string]{about: about{name: "node-cluster", group: GroupUpstream, usage: "node cluster `NAME` for the control plane"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.NodeCluster }},
		&setting[string]{about: about{name: "node-locality", group: GroupUpstream, usage: "where this machine runs: `REGION[/ZONE[/SUB-ZONE]]`"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.NodeLocality }},
		&setting[[]string]{about: about{name: "node-metadata", group: GroupUpstream, usage: "add `KEY=VALUE`, with a text as VALUE, to the metadata of the node"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.NodeMetadata }},
		&setting[[]string]{about: about{name: "upstream-authority", group: GroupUpstream, usage: "ask another server for the names of an xdstp authority: " +
			"`NAME=ADDR`, with HOST:PORT or unix:PATH as ADDR; a second server of a NAME is asked while the first one does not answer"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.UpstreamAuthority }},
		&setting[string]{about: about{name: "upstream-transport", group: GroupUpstream, usage: "ask the control plane by `" +
			strings.Join(upstreamTransports(), "|") + "`: delta is incremental, without delta by state of the world; ads is one stream, grpc a stream for each type"},
			kind: text, byDefault: string(upstream.DeltaAggregated), law: oneOfWords(upstreamTransports()...),
			into: func(s *Settings) *Value[string] { return &s.UpstreamTransport }},
		&setting[string]{about: about{name: "upstream-ca", group: GroupUpstream, usage: "CA certificates for the certificate of the control plane, a `FILE` in " +
			"PEM (default: the CA certificates of the system); with --upstream-ca, --upstream-cert, --upstream-key or " +
			"--upstream-server-name, xdspub connects by TLS 1.3"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.UpstreamCA }},
		&setting[string]{about: about{name: "upstream-cert", group: GroupUpstream, usage: "certificate chain of xdspub for the control plane, a `FILE` in PEM"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.UpstreamCert }},
		&setting[string]{about: about{name: "upstream-key", group: GroupUpstream, usage: "private key of --upstream-cert, a `FILE` in PEM"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.UpstreamKey }},
		&setting[string]{about: about{name: "upstream-server-name", group: GroupUpstream, usage: "`NAME` in the certificate of the control plane " +
			"(default: the host of the source)"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.UpstreamServerName }},
	)
}

// AggregateBy returns the row of --aggregate-by.
func AggregateBy() Row {
	return &setting[[]string]{about: about{name: "aggregate-by", group: GroupUpstream,
		usage: "ask the control plane once for all clients whose nodes have equal `FIELDS`, as a node with these fields; the fields are " +
			"id, cluster, locality.region, locality.zone, locality.sub_zone, metadata.NAME, user_agent_name and user_agent_version " +
			"(default: once for all clients)"},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.AggregateBy }}
}

// MaxStale returns the row of --max-stale.
func MaxStale() Row {
	return &setting[time.Duration]{about: about{name: "max-stale", group: GroupUpstream, usage: "no longer be ready (/readyz) once the control plane or the store is gone, " +
		"or can't be used, for `TIME`; nothing else changes, and nothing expires; 0s is always ready"},
		kind: times, law: notNegative, into: func(s *Settings) *Value[time.Duration] { return &s.MaxStale }}
}

// upstreamTransports returns the values of --upstream-transport.
func upstreamTransports() (names []string) {
	for _, t := range upstream.Transports {
		names = append(names, string(t))
	}
	return names
}
