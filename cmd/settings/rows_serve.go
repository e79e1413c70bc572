package settings

import (
	"time"
	"xdspub/setup/bootstrap"
)

// Serve returns the rows of the addresses, certificates and limits of a server.
func Serve() []Row {
	return []Row{
		&setting[[]string]{about: about{name: "grpc", group: GroupServe, usage: "serve gRPC clients on `ADDR`: HOST:PORT, PORT of this machine, unix:PATH, or fd:NAME of a " +
			"socket unit of systemd", outside: true},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.GRPC }},
		httpAddress(),
		&setting[string]{about: about{name: "xds-cluster", group: GroupServe,
			usage: "`NAME` of the cluster in the Envoys' bootstrap that leads to this server; the server writes it into " +
				"config sources for clients without ADS"},
			kind: text, byDefault: bootstrap.DefaultCluster, into: func(s *Settings) *Value[string] { return &s.XDSCluster }},
		&setting[time.Duration]{about: about{name: "drain-time", group: GroupServe, usage: "wait `TIME` at most for clients to leave after SIGTERM"},
			kind: times, byDefault: 5 * time.Second, law: aboveZero, into: func(s *Settings) *Value[time.Duration] { return &s.DrainTime }},
		serverCert(),
		serverKey(),
		clientCA(),
		&setting[[]string]{about: about{name: "allow-node", group: GroupServe,
			usage: "allow a node id only to clients with a matching certificate: `ID=SAN`, two patterns; a * stands for " +
				"the same text in both, ** for any text (default: a client may claim any node id)", outside: true},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.AllowNode }},
		&setting[[]string]{about: about{name: "node-param", group: GroupServe,
			usage: "take the dynamic parameter KEY of a client that sends no parameters from a field of its node: " +
				"`KEY=FIELD`, such as env=metadata.env; the fields are id, cluster, locality.region, locality.zone, " +
				"locality.sub_zone, metadata.NAME, user_agent_name and user_agent_version"},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.NodeParam }},
		&setting[[]string]{about: about{name: "allow-param", group: GroupServe,
			usage: "allow a dynamic parameter only to clients with a matching certificate: `KEY=VALUE=SAN`, patterns as " +
				"for --allow-node; a variant with secrets needs such a proof, except for clients of Unix sockets", outside: true},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.AllowParam }},
		allowStatus(),
		insecure(),
		pprof(),
		&setting[[]string]{about: about{name: "limit", group: GroupServe, usage: "bound what clients cost: `NAME=VALUE`, such as " +
			"streams=1000; docs/serve-security.md lists the limits", outside: true},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.Limit }},
		&setting[string]{about: about{name: "max-client-memory", group: GroupServe,
			usage: "bound the memory that clients make the server hold, beyond the memory for the tree, to `SIZE`: the " +
				"server refuses further requests; a single client gets at most half", outside: true},
			kind: text, byDefault: "256MiB", into: func(s *Settings) *Value[string] { return &s.MaxClientMemory }},
		state(),
	}
}

// Operations returns the rows of the HTTP server of watch. Serve has the same rows.
func Operations() []Row {
	return rows(httpAddress(), serverCert(), serverKey(), clientCA(), allowStatus(), insecure(), pprof())
}

func httpAddress() Row {
	return &setting[[]string]{about: about{name: "http", group: GroupServe, usage: "answer metrics, probes, the page and the API on `ADDR`: PORT of " +
		"this machine, HOST:PORT, unix:PATH, or fd:NAME of a socket unit of systemd", servedUsage: "serve HTTP on `ADDR`: HOST:PORT, PORT of this " +
		"machine, unix:PATH, or fd:NAME of a socket unit of systemd: REST, metrics, probes, the page " +
		"and the API", outside: true},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.HTTP }}
}

func serverCert() Row {
	return &setting[string]{about: about{name: "tls-cert", group: GroupServe,
		usage: "certificate chain of the server, a `FILE` in PEM: clients connect by TLS 1.3, except to Unix " +
			"sockets; the server reads a changed FILE again", outside: true},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.ServerCert }}
}

func serverKey() Row {
	return &setting[string]{about: about{name: "tls-key", group: GroupServe, usage: "private key of --tls-cert, a `FILE` in PEM", outside: true},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.ServerKey }}
}

func clientCA() Row {
	return &setting[string]{about: about{
		name: "client-ca", group: GroupServe,
		usage: "CA certificates for the certificates of clients, a `FILE` in PEM: each client needs a certificate", outside: true,
	},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.ClientCA }}
}

func allowStatus() Row {
	return &setting[[]string]{about: about{name: "allow-status", group: GroupServe,
		usage: "show status, findings and events (CSDS, status --serve, /api/) to clients whose certificate has a matching " +
			"`SAN`, a pattern with at most one *; clients of Unix sockets always see the status, and without " +
			"--client-ca also clients on this machine", outside: true},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.AllowStatus }}
}

// pprof shows what the program costs.
func pprof() Row {
	return &setting[bool]{about: about{name: "pprof", group: GroupServe, usage: "answer /debug/pprof/ on the addresses of --http, to clients that " +
		"may see the status: profiles of the processor time and the memory of xdspub", outside: true},
		kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Pprof }}
}

func insecure() Row {
	return &setting[bool]{about: about{name: "insecure", group: GroupServe, usage: "allow addresses that other machines reach without TLS", outside: true},
		kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Insecure }}
}

// AskedServe returns the rows about which server to ask, and how. The first row is --serve.
func AskedServe() []Row {
	return []Row{
		&setting[string]{about: about{name: "serve", group: GroupServe, usage: "show the source tree and the clients of the " +
			"xdspub serve that listens on `ADDR`, HOST:PORT or unix:PATH"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Serve }},
		&setting[string]{about: about{name: "tls-ca", group: GroupServe, usage: "CA certificates for the server's certificate, a " +
			"`FILE` in PEM (default: the CA certificates of the system); with one of the --tls flags, --serve asks by TLS 1.3", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSCA }},
		&setting[string]{about: about{name: "tls-cert", group: GroupServe, usage: "certificate chain for a server with " +
			"--client-ca, a `FILE` in PEM", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSCert }},
		&setting[string]{about: about{name: "tls-key", group: GroupServe, usage: "private key of --tls-cert, a `FILE` in PEM", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.TLSKey }},
		&setting[string]{about: about{name: "tls-server-name", group: GroupServe, usage: "`NAME` in the certificate of the server " +
			"(default: the host of --serve)", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.TLSServerName }},
	}
}
