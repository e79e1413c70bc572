package settings

// Store returns the rows about the store of a fleet. The first row is the store.
func Store() []Row {
	return []Row{
		&setting[string]{about: about{name: "store", group: GroupStore, usage: "the store of a fleet, " +
			"`etcd://HOST:PORT[,…]/PREFIX`: watch publishes there what is in --out, and status shows the fleet", outside: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Store }},
		&setting[string]{about: about{name: "store-ca", group: GroupStore, usage: "connect to the store by TLS: CA certificates for " +
			"the servers, a `FILE` in PEM; without TLS, only servers of this machine are allowed", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.StoreCA }},
		&setting[string]{about: about{name: "store-cert", group: GroupStore, usage: "certificate chain for the store, a `FILE` in PEM; " +
			"a changed FILE is read again", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.StoreCert }},
		&setting[string]{about: about{name: "store-key", group: GroupStore, usage: "private key of --store-cert, a `FILE` in PEM", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.StoreKey }},
		&setting[string]{about: about{name: "store-user", group: GroupStore, usage: "`USER` of the store", outside: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.StoreUser }},
		&setting[string]{about: about{name: "store-password", group: GroupStore, usage: "`FILE` with the password of --store-user", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.StorePassword }},
	}
}
