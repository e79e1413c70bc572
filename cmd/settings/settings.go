// Package settings has the settings of xdspub as one typed value, and the table of their names, kinds and
// descriptions. The command line wins over the environment, the environment over a settings file, and the file
// over the default.
//
//	s, err := settings.New(settings.Render(), given)
//	s, err = s.WithFile(source)
//	fmt.Println(s.Out.Value, s.StepGap.Value)
package settings

import (
	"slices"
	"time"

	"xdspub/check/policy"
	"xdspub/store/waves"
	"xdspub/watch/freeze"
)

// Settings are the settings of a command. A setting is zero if the command has no row for it and the settings
// file does not name it.
type Settings struct {
	// Reading and judging a source tree.
	Config, Bootstrap            Value[string]
	Ignore, AllowPath            Value[[]string]
	DescriptorSet, Param         Value[[]string]
	AllowEmpty, WarningsAsErrors Value[bool]
	Profile, EnvoyVersion        Value[[]string]
	Disable, Enable              Value[[]string]
	Envoy, EnvoyMode             Value[string]
	StdinFormat, StdinFilename   Value[string]
	Root, Secrets, ChangedSince  Value[string]
	Only                         Value[[]string]
	Baseline, WriteBaseline      Value[string]
	Target, Against              Value[[]string]
	ClientTarget, AgainstTarget  Value[string]
	Severities                   Value[Levels] // of rules, by code
	Overrides                    Value[policy.Overrides]
	Targets                      Value[[]Target]
	Freeze                       Value[freeze.Windows]
	Owners                       Value[[]string] // patterns of folders that own their resources

	// Publishing a Snapshot, and the Envoys that confirm the publish.
	Out, EnvoyPath, Format, EDS, Group Value[string]
	InotifyBudget                      Value[int]
	PollInterval, StepGap, TrimDelay   Value[time.Duration]
	AllOrNothing, DryRun, RetryHeld    Value[bool]
	WhileRefused                       Value[[]string]
	MaxRemoval                         Value[int]
	AllowRemoval                       Value[bool]
	ConfirmWithin                      Value[time.Duration]
	EnvoyAdmin, EnvoyLog               Value[[]string]
	History                            Value[int]
	HistorySize, State                 Value[string]
	AckQuorum                          Value[string]
	AckTimeout, WarmTimeout            Value[time.Duration]

	// Decisions of an operator, and the part of the history that somebody asks for.
	Reason, Since, At    Value[string]
	For                  Value[time.Duration]
	Replace, WithSecrets Value[bool]
	Withdraw             Value[bool]

	// When a watch reads the source tree.
	QuietPeriod, Rescan, Poll Value[time.Duration]
	Once                      Value[bool]

	// What doctor does.
	EnvoyUser, Bundle Value[string]
	Prune             Value[bool]

	// Which faults validate and doctor correct.
	Fix, FixUnsafe, Diff Value[bool]

	// Addresses, certificates and limits of a server.
	GRPC, HTTP                         Value[[]string]
	ServerCert, ServerKey, ClientCA    Value[string]
	XDSCluster, MaxClientMemory        Value[string]
	DrainTime                          Value[time.Duration]
	AllowNode, AllowParam, AllowStatus Value[[]string]
	NodeParam, Limit                   Value[[]string]
	Insecure, Pprof                    Value[bool]

	// The store of a fleet.
	Store, StoreCA, StoreCert, StoreKey Value[string]
	StoreUser, StorePassword            Value[string]
	StoreTarget, Machine                Value[string]
	EncryptSecrets                      Value[string]
	Label, RolloutCheck                 Value[[]string]
	Rollout                             Value[waves.Plan]

	// Who gets events.
	OnEvent, Webhook         Value[[]string]
	WebhookSecret, WebhookCA Value[string]

	// How a client of a server connects.
	Serve, Transport, Server       Value[string]
	TLSCA, TLSCert, TLSKey         Value[string]
	TLSServerName                  Value[string]
	Servers, ChannelCreds          Value[[]string]
	ServerFeature                  Value[[]string]
	RefreshInterval                Value[time.Duration]
	Authority, AuthorityServer     Value[[]string]
	ServerListener, ClientListener Value[string]

	// How xdspub connects to a control plane that is the source.
	NodeFrom                  Value[string]
	UpstreamAuthority         Value[[]string]
	UpstreamTransport         Value[string]
	UpstreamCA                Value[string]
	UpstreamCert, UpstreamKey Value[string]
	UpstreamServerName        Value[string]
	MaxStale                  Value[time.Duration]
	AggregateBy               Value[[]string]
	Resolve                   Value[string]

	// What else is in a bootstrap.
	NodeID, NodeCluster, NodeLocality Value[string]
	NodeMetadata, StatsTag            Value[[]string]
	CertificateProvider               Value[[]string]
	Admin, AdminPaths, MaxHeap, From  Value[string]
	MaxConnections                    Value[int]

	// What is printed, and how.
	Quiet, Timings, Variants   Value[bool]
	LogFormat, LogLevel        Value[string]
	Color, MinSeverity         Value[string]
	MaxFindings                Value[int]
	PrintFormat, Output, To    Value[string]
	GraphFormat, Focus         Value[string]
	All                        Value[bool]
	FromRevision, ToRevision   Value[string]
	RunningEnvoy, DiffFormat   Value[string]
	SideBySide                 Value[bool]
	ReportFormat, ReportOutput Value[[]string]

	// Line has the options of the command line, in the order of the command line.
	Line []Given
	// Types are those of DescriptorSet. WithFile reads them.
	Types Types

	given *Settings // the settings before WithFile; nil if WithFile has read no file
	tree  string    // the source tree whose xdspub.yaml was read; empty for no file, or the file of Config
}

// Given is an option of the command line with its text.
type Given struct {
	Row  Row
	Text string
}

// New returns the settings that the command line and the environment give to a command with the rows. A text
// that a row does not accept is a *UsageError.
func New(rows []Row, line []Given) (*Settings, error) {
	s := &Settings{Line: line}
	for _, r := range rows {
		var texts []string
		for _, g := range line {
			if g.Row == r {
				texts = append(texts, g.Text)
			}
		}
		if err := r.fill(s, texts); err != nil {
			return nil, err
		}
	}
	for _, r := range rows {
		if err := r.checkGiven(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Check returns a *UsageError if the value of one of the rows is not allowed.
func (s *Settings) Check(rows ...Row) error {
	for _, r := range rows {
		if err := r.check(s); err != nil {
			return err
		}
	}
	return nil
}

// Settable returns the rows of the settings that a settings file can have.
func Settable() []Row {
	return slices.Concat(Source()[1:], Publish(), Serve(), Confirm(), Watch(), Hooks(), Store(), []Row{rolloutCheck(), allOrNothing(), whileRefused()})
}

// Fixed returns the rows of the settings that stay as they were when a watch began, even if the settings file
// changes.
func Fixed() []Row {
	list := slices.Concat(Serve(), Watch(), Hooks(), Store())
	return append(list, rolloutCheck(), Publish()[0], group())
}

// SameFile reports whether a and b have the same values for all settings that a settings file can have.
func SameFile(a, b *Settings) bool {
	for _, r := range Settable() {
		if !r.Same(a, b) {
			return false
		}
	}
	return sameSections(a, b)
}
