package settings

import (
	"strings"
	"time"

	"xdspub/render"
	"xdspub/setup/bootstrap"
)

// bootstrapEnvoy returns the rows of a bootstrap of Envoy.
func bootstrapEnvoy() []Row {
	return []Row{
		&setting[string]{about: about{
			name: "transport", group: GroupResources,
			usage: "how resources come: `" + strings.Join(TransportNames(), "|") + "`; all but file come from xdspub serve",
		},
			kind: text, byDefault: string(bootstrap.File), law: oneOfWords(TransportNames()...),
			into: func(s *Settings) *Value[string] { return &s.Transport }},
		&setting[string]{about: about{name: "out", group: GroupResources, usage: "output `DIR` of render or watch (required for files)"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		&setting[string]{about: about{name: "envoy-path", group: GroupResources, usage: "absolute path of the output `DIR` as " +
			"Envoy sees it (default: as it was published)"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.EnvoyPath }},
		&setting[string]{about: about{name: "format", group: GroupResources, usage: "format of the " +
			"published files: `" + strings.Join(FormatNames(), "|") + "` (default: as they were published, else " + render.JSON.Name + ")"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Format }},
		pollInterval(GroupResources, "have Envoy poll, every `TIME`, the files that the bootstrap names, for file systems without "+
			"events; give render or watch the same option for the other files"),
		&setting[string]{about: about{name: "server", group: GroupResources, usage: "`ADDR` of the server, HOST:PORT or " +
			"unix:PATH: one of --grpc, or for rest of --http, as Envoy sees it (required but for files)"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Server }},
		&setting[string]{about: about{name: "xds-cluster", group: GroupResources, usage: "`NAME` of the cluster that leads to the server, as serve has it"},
			kind: text, byDefault: bootstrap.DefaultCluster, into: func(s *Settings) *Value[string] { return &s.XDSCluster }},
		&setting[string]{about: about{name: "tls-ca", group: GroupResources, usage: "connect by TLS: CA certificates for the " +
			"server's certificate, a `FILE` in PEM; needs --output: by files beside it, Envoy reads changed certificates again", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSCA }},
		&setting[string]{about: about{name: "tls-server-name", group: GroupResources, usage: "`NAME` in the certificate of the " +
			"server (default: the host of --server)", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.TLSServerName }},
		&setting[string]{about: about{name: "tls-cert", group: GroupResources, usage: "certificate chain of this Envoy, a `FILE` " +
			"in PEM, for a server with --client-ca", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSCert }},
		&setting[string]{about: about{name: "tls-key", group: GroupResources, usage: "private key of --tls-cert, a `FILE` in PEM", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSKey }},
		&setting[string]{about: about{name: "node-id", group: GroupNode, usage: "node `ID` of this Envoy"},
			kind: text, byDefault: "envoy", into: func(s *Settings) *Value[string] { return &s.NodeID }},
		&setting[string]{about: about{name: "node-cluster", group: GroupNode, usage: "node cluster `NAME` of this Envoy"},
			kind: text, byDefault: "envoy", into: func(s *Settings) *Value[string] { return &s.NodeCluster }},
		&setting[string]{about: about{name: "node-locality", group: GroupNode, usage: "where this Envoy runs: `REGION[/ZONE[/SUB-ZONE]]`"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.NodeLocality }},
		&setting[[]string]{about: about{name: "node-metadata", group: GroupNode, usage: "tell servers `KEY=VALUE` of this Envoy, a text"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.NodeMetadata }},
		&setting[string]{about: about{name: "admin", group: GroupNode, usage: "Envoy's admin address, `IP:PORT` or unix:PATH"},
			kind: text, byDefault: "127.0.0.1:9901", into: func(s *Settings) *Value[string] { return &s.Admin }},
		&setting[string]{about: about{name: "admin-paths", group: GroupNode, usage: "paths that the admin " +
			"interface answers: `" + strings.Join(adminPaths, "|") + "`; needed: /ready, /server_info and what xdspub asks of " +
			"/stats and /config_dump; other paths get 403 (Envoy 1.37 and newer)"},
			kind: text, byDefault: AllAdminPaths, law: oneOfWords(adminPaths...), into: func(s *Settings) *Value[string] { return &s.AdminPaths }},
		&setting[[]string]{about: about{name: "stats-tag", group: GroupNode, usage: "give all statistics the tag `NAME=VALUE`"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.StatsTag }},
		&setting[int]{about: about{name: "max-connections", group: GroupNode, usage: "let clients have `N` connections at most, " +
			"all listeners together; the admin address stays open", defaultText: "no limit"},
			kind: count, into: func(s *Settings) *Value[int] { return &s.MaxConnections }},
		&setting[string]{about: about{name: "max-heap", group: GroupNode, usage: "keep Envoy's memory below `SIZE`, such as " +
			"512MiB or 2GiB: at 95% it gives back what is free, at 98% it answers new requests with 503 (default: no limit)"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.MaxHeap }},
		&setting[string]{about: about{name: "from", group: GroupNode, usage: "extend the bootstrap in `FILE`, YAML or JSON: its content and comments stay; a contradiction is an " +
			"error"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.From }},
		bootstrapOutput(),
		&setting[string]{about: about{name: "envoy", group: GroupPrint, usage: "write the bootstrap only if this Envoy, a program " +
			"`FILE` or a name in PATH, accepts it by --mode validate; files that the bootstrap names must exist, and its Lua " +
			"code runs", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Envoy }},
	}
}

// contentGRPC returns the rows of the contents of a bootstrap of gRPC.
func contentGRPC() []Row {
	return []Row{
		&setting[[]string]{about: about{name: "server", group: GroupServers, usage: "`ADDR` of the server, one of its --grpc: " +
			"HOST:PORT, unix:PATH or another target of gRPC; programs ask a further server if the earlier ones are down"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.Servers }},
		&setting[[]string]{about: about{
			name: "channel-creds", group: GroupServers,
			usage: "connect by `insecure|tls|google_default`; programs use the first that they know " +
				"(default: tls with --tls-ca or --tls-cert; insecure for servers on this machine)",
		},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.ChannelCreds }},
		&setting[string]{about: about{name: "tls-ca", group: GroupServers, usage: "for tls: CA certificates for the server's " +
			"certificate, a `FILE` in PEM (default: the CA certificates of the system)", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSCA }},
		&setting[string]{about: about{name: "tls-cert", group: GroupServers, usage: "for tls: certificate chain of the program, a " +
			"`FILE` in PEM, for a server with --client-ca", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSCert }},
		&setting[string]{about: about{name: "tls-key", group: GroupServers, usage: "private key of --tls-cert, a `FILE` in PEM", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSKey }},
		&setting[time.Duration]{about: about{name: "refresh-interval", group: GroupServers, usage: "for tls: have programs read " +
			"certificates again every `TIME`", defaultText: "10m, gRPC's own"},
			kind: times, into: func(s *Settings) *Value[time.Duration] { return &s.RefreshInterval }},
		&setting[[]string]{about: about{name: "server-feature", group: GroupServers, usage: "tell programs that servers have the " +
			"feature `NAME`, such as ignore_resource_deletion"},
			kind: list, byDefault: []string{"xds_v3"}, into: func(s *Settings) *Value[[]string] { return &s.ServerFeature }},
		&setting[string]{about: about{name: "node-id", group: GroupProgram, usage: "node `ID` of the program"},
			kind: text, byDefault: "grpc", into: func(s *Settings) *Value[string] { return &s.NodeID }},
		&setting[string]{about: about{name: "node-cluster", group: GroupProgram, usage: "node cluster `NAME` of the program"},
			kind: text, byDefault: "grpc", into: func(s *Settings) *Value[string] { return &s.NodeCluster }},
		&setting[string]{about: about{name: "node-locality", group: GroupProgram, usage: "where the program runs: `REGION[/ZONE[/SUB-ZONE]]`"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.NodeLocality }},
		&setting[[]string]{about: about{name: "node-metadata", group: GroupProgram, usage: "tell servers `KEY=VALUE` of the program, a text"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.NodeMetadata }},
		&setting[[]string]{about: about{name: "certificate-provider", group: GroupProgram, usage: "define the certificate provider that resources call NAME: `NAME=CERT:KEY:CA`, with a certificate " +
			"chain and its key, a CA, or all three"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.CertificateProvider }},
		&setting[string]{about: about{name: "server-listener", group: GroupNames, usage: "name of the listener of a gRPC server, " +
			"a `TEMPLATE` in which %s is its IP:PORT"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.ServerListener }},
		&setting[string]{about: about{name: "client-listener", group: GroupNames, usage: "name of the listener of a target " +
			"xds:///PATH, a `TEMPLATE` in which %s is PATH", defaultText: "%s"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.ClientListener }},
		&setting[[]string]{about: about{name: "authority", group: GroupNames, usage: "allow targets xds://NAME/PATH: " +
			"`NAME[=TEMPLATE]`, the template of the name of their listener, in which %s is PATH (default: " +
			"xdstp://NAME/envoy.config.listener.v3.Listener/%s)"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.Authority }},
		&setting[[]string]{about: about{name: "authority-server", group: GroupNames, usage: "ask another server for the names of an authority: `NAME=ADDR`"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.AuthorityServer }},
	}
}

// WrittenGRPC returns the rows of bootstrap grpc that are about the bootstrap that it writes.
func WrittenGRPC() []Row { return append(contentGRPC(), bootstrapOutput()) }

func resolve() Row {
	return &setting[string]{about: about{name: "resolve", group: GroupRun, usage: "print what is asked for at a `TARGET`: " +
		"xds:///PATH, xds://NAME/PATH, or the IP:PORT of a server", noVariable: true},
		kind: text, into: func(s *Settings) *Value[string] { return &s.Resolve }}
}

func bootstrapOutput() Row {
	return &setting[string]{about: about{
		name: "output", group: GroupPrint,
		usage: "write to `FILE` if there is no error (- is standard output)", noVariable: true,
	},
		kind: filePath, byDefault: "-", into: func(s *Settings) *Value[string] { return &s.Output }}
}

// The values of --admin-paths.
const (
	AllAdminPaths    = "all"
	NeededAdminPaths = "needed"
)

var adminPaths = []string{AllAdminPaths, NeededAdminPaths}

// TransportNames returns the values of --transport.
func TransportNames() (names []string) {
	for _, t := range bootstrap.Transports {
		names = append(names, string(t))
	}
	return names
}
