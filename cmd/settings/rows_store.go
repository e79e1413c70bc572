package settings

import "strings"

// Etcd begins a source that is a store.
const Etcd = "etcd://" // HOST:PORT[,HOST:PORT]/PREFIX

// IsStore reports whether a source is a store.
func IsStore(source string) bool { return strings.HasPrefix(source, Etcd) }

// Store returns the rows about the store of a fleet. The first row is the store.
func Store() []Row { return append(askedStore(), encryptSecrets()) }

// askedStore returns the rows for a command that only asks a store.
func askedStore() []Row {
	return append([]Row{
		&setting[string]{about: about{name: "store", group: GroupStore, usage: "the store of a fleet, " +
			"`etcd://HOST:PORT[,…]/PREFIX`: watch publishes there what is in --out, and status shows the fleet", outside: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Store }},
	}, storeConnection()...)
}

// FromStore returns the rows about a store that is the source.
func FromStore() []Row { return append(storeConnection(), encryptSecrets(), storeTarget()) }

// encryptSecrets returns the row of --encrypt-secrets.
func encryptSecrets() Row {
	return &setting[string]{about: about{name: "encrypt-secrets", group: GroupStore, usage: "encrypt the changes in the store by age, and refuse plain " +
		"changes: a `FILE` with identities of this machine and recipients of other machines; a changed FILE is read again", outside: true},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.EncryptSecrets }}
}

// OfFollower returns the rows that have no use without a store as source.
func OfFollower() []Row { return rows(storeTarget(), Machine(), Label()) }

// storeTarget returns the row of --store-target.
func storeTarget() Row {
	return &setting[string]{about: about{name: "store-target", group: GroupStore, usage: "the target `NAME` of the store " +
		"(default: that of a source tree without targets; status: all targets)"},
		kind: text, into: func(s *Settings) *Value[string] { return &s.StoreTarget }}
}

// Machine returns the row of --machine.
func Machine() Row {
	return &setting[string]{about: about{name: "machine", group: GroupStore, usage: "acknowledge snapshots of the store as the machine " +
		"`NAME`", defaultText: "the name of the host"},
		kind: text, into: func(s *Settings) *Value[string] { return &s.Machine }}
}

// Label returns the row of --label.
func Label() Row {
	return &setting[[]string]{about: about{name: "label", group: GroupStore, usage: "label this machine with `KEY=VALUE`: a wave of the " +
		"setting rollout may choose the label"},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.Label }}
}

// rolloutCheck returns the row of --check.
func rolloutCheck() Row {
	return &setting[[]string]{about: about{name: "check", group: GroupStore, usage: "take a rollout back when `CMD|URL` fails: a program, by " +
		"its exit status, or a query of a Prometheus, http://HOST/api/v1/query?query=EXPRESSION, by having a result (with --webhook-ca)", outside: true},
		kind: wholeTexts, into: func(s *Settings) *Value[[]string] { return &s.RolloutCheck }}
}

// storeConnection returns the rows about the connection to a store.
func storeConnection() []Row {
	return []Row{
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
