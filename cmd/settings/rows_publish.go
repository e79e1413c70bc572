package settings

import (
	"slices"
	"strings"
	"time"

	"xdspub/render"
	"xdspub/render/history"
	"xdspub/render/planner"
	"xdspub/watch/part"
	"xdspub/xds/quorum"
)

// Publish returns the rows about how and where a Snapshot is published. The first row is --out.
func Publish() []Row {
	return []Row{
		&setting[string]{about: about{name: "out", group: GroupPublish, usage: "output `DIR`, which Envoy " +
			"reads (required)", outside: true, servedUsage: "publish files, too: output `DIR`, which Envoy reads"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		&setting[string]{about: about{name: "envoy-path", group: GroupPublish, usage: "absolute path of the output `DIR` as Envoy " +
			"sees it, such as the mount path in Envoy's container (default: that of --out)"},
			kind: text, law: absoluteOrNone, form: absoluteSchema, into: func(s *Settings) *Value[string] { return &s.EnvoyPath }},
		format(),
		eds(), inotifyBudget(),
		pollInterval(GroupPublish, "have Envoy poll, every `TIME`, the files that listeners and clusters name, for file systems "+
			"without events; polled files need no inotify instances; bootstrap envoy has the same option for its own files"),
		&setting[time.Duration]{about: about{name: "step-gap", group: GroupPublish, usage: "wait `TIME`, and --poll-interval, " +
			"between the steps of a change that no Envoy acknowledges"},
			kind: times, byDefault: time.Second, law: notNegative, into: func(s *Settings) *Value[time.Duration] { return &s.StepGap }},
		&setting[time.Duration]{about: about{name: "trim-delay", forClients: true, group: GroupPublish, usage: "keep a removed " +
			"cluster published for `TIME`, while connections to it drain"},
			kind: times, byDefault: 10 * time.Minute, law: notNegative, into: func(s *Settings) *Value[time.Duration] { return &s.TrimDelay }},
		group(),
		&setting[int]{about: about{name: "history", forClients: true, group: GroupPublish, usage: "keep the last `N` published snapshots, " +
			"which xdspub history shows; 0 keeps none",
			servedUsage: "keep the last `N` published snapshots, which xdspub history shows, in --out or --state; 0 keeps none"},
			kind: count, byDefault: history.DefaultKeep, law: upToEntries, into: func(s *Settings) *Value[int] { return &s.History }},
		&setting[string]{about: about{name: "history-size", forClients: true, group: GroupPublish, usage: "bound the history to `SIZE`: " +
			"older snapshots go first", outside: true},
			kind: text, byDefault: "256MiB", into: func(s *Settings) *Value[string] { return &s.HistorySize }},
		&setting[int]{about: about{name: "max-removal", forClients: true, group: GroupPublish, usage: "refuse a change that removes " +
			"more than `PERCENT` of the published resources of a type, if more than 10 are published"},
			kind: count, byDefault: 50, law: percent, form: percentSchema, into: func(s *Settings) *Value[int] { return &s.MaxRemoval }},
		&setting[bool]{about: about{name: "allow-removal", forClients: true, group: GroupPublish, usage: "publish a change even if it " +
			"removes all listeners, all endpoints of a cluster, or more than --max-removal"},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.AllowRemoval }},
	}
}

// Inlining returns the rows that say which resources are inlined into other resources.
func Inlining() []Row { return []Row{eds(), inotifyBudget()} }

// eds returns the row of --eds.
func eds() Row {
	return &setting[string]{about: about{name: "eds", group: GroupPublish, usage: "where endpoints of EDS clusters go: " +
		"`file|inline|auto`; file: a file for each; inline: into the clusters; auto: files until they exceed " +
		"--inotify-budget, inline from then on"},
		kind: text, byDefault: "auto", law: oneOfWords(string(planner.EndpointsFile), string(planner.EndpointsInline),
			string(planner.EndpointsAuto)), into: func(s *Settings) *Value[string] { return &s.EDS }}
}

// inotifyBudget returns the row of --inotify-budget.
func inotifyBudget() Row {
	return &setting[int]{about: about{name: "inotify-budget", group: GroupPublish, usage: "number `N` of inotify instances that one " +
		"Envoy may use, one for each file that it watches; halve it if you use hot restart"},
		kind: count, byDefault: 120, law: twoOrMore, into: func(s *Settings) *Value[int] { return &s.InotifyBudget }}
}

// state returns the row of --state.
func state() Row {
	return &setting[string]{about: about{name: "state", group: GroupServe, usage: "keep the history, the decisions of operators and the control " +
		"socket in `DIR`; with --out, they are in the output directory", outside: true},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.State }}
}

// reason returns the row of --reason of a command that publishes once.
func reason() Row {
	return &setting[string]{about: about{name: "reason", group: GroupRun, usage: "why, as `TEXT`, for the history; also publishes during a freeze", noVariable: true},
		kind: text, into: func(s *Settings) *Value[string] { return &s.Reason }}
}

// pollInterval returns the row of --poll-interval.
func pollInterval(group, usage string) Row {
	return &setting[time.Duration]{about: about{name: "poll-interval", group: group, usage: usage, defaultText: "it waits for events"},
		kind: times, law: pollable, into: func(s *Settings) *Value[time.Duration] { return &s.PollInterval }}
}

// allOrNothing returns the row of --all-or-nothing.
func allOrNothing() Row {
	return &setting[bool]{about: about{name: "all-or-nothing", group: GroupPublish, usage: "publish nothing for any target while " +
		"the source tree has errors for one"},
		kind: boolean, into: func(s *Settings) *Value[bool] { return &s.AllOrNothing }}
}

// whileRefused returns the row of --while-refused.
func whileRefused() Row {
	return &setting[[]string]{about: about{name: "while-refused", forClients: true, group: GroupPublish, usage: "while the source " +
		"tree is refused or frozen, publish the faultless changes of live `" + strings.Join(part.Names(), "|") + "`; by default, nothing is published"},
		kind: list, law: eachOf(part.Names()...), form: partSchema, into: func(s *Settings) *Value[[]string] { return &s.WhileRefused }}
}

// confirmWithin returns the row of --confirm-within.
func confirmWithin() Row {
	return &setting[time.Duration]{about: about{name: "confirm-within", forClients: true, group: GroupPublish, usage: "undo a change `TIME` after " +
		"its publish, unless an operator confirms it by xdspub confirm; render waits for that", defaultText: "a change stays"},
		kind: times, law: upToTrial, into: func(s *Settings) *Value[time.Duration] { return &s.ConfirmWithin }}
}

// Confirm returns the rows about Envoys that acknowledge a change.
func Confirm() []Row {
	return []Row{
		envoyAdmin(),
		&setting[[]string]{about: about{name: "envoy-log", group: GroupAcks, usage: "log `FILE` of this Envoy, to show why it " +
			"rejects a change; start Envoy with --log-path FILE --file-flush-interval-msec 100", outside: true},
			kind: filePaths, into: func(s *Settings) *Value[[]string] { return &s.EnvoyLog }},
		&setting[string]{about: about{name: "ack-quorum", forClients: true, group: GroupAcks, usage: "how many of the Envoys that " +
			"answer must acknowledge a step before the next one starts: `all|any|N`",
			servedUsage: "how many of the Envoys that answer and read --out, and how many of the connected clients that the " +
				"change concerns, must acknowledge a change: `none|any|all|N`; too many rejections undo the change; unless set, all of " +
				"these Envoys and none of the clients",
			servedDefault: "all, none"},
			kind: text, byDefault: quorum.Quorum{}.String(), law: quorumOrNone, form: quorumSchema,
			into: func(s *Settings) *Value[string] { return &s.AckQuorum }},
		&setting[time.Duration]{about: about{name: "ack-timeout", forClients: true, group: GroupAcks, usage: "wait `TIME` at most " +
			"for the acknowledgements of a step; then it counts as unconfirmed, and the change continues",
			servedUsage: "wait `TIME` at most for the acknowledgements of a step, or of the clients; then it counts as unconfirmed, and the change continues"},
			kind: times, byDefault: 15 * time.Second, law: aboveZero, into: func(s *Settings) *Value[time.Duration] { return &s.AckTimeout }},
		&setting[time.Duration]{about: about{name: "warm-timeout", group: GroupAcks, usage: "wait `TIME` at most for new clusters " +
			"to warm before listeners and routes use them"},
			kind: times, byDefault: 30 * time.Second, law: aboveZero, into: func(s *Settings) *Value[time.Duration] { return &s.WarmTimeout }},
	}
}

// ForFiles returns the rows of Publish and Confirm that are only about published files, not about clients of
// serve.
func ForFiles() []Row {
	return slices.DeleteFunc(slices.Concat(Publish(), Confirm()), Row.isForClients)
}

// envoyAdmin returns the row of --envoy-admin.
func envoyAdmin() Row {
	return &setting[[]string]{about: about{name: "envoy-admin", group: GroupAcks, usage: "admin `URL` of an Envoy that reads the " +
		"output directory: http://HOST:PORT or unix:PATH", outside: true},
		kind: list, into: func(s *Settings) *Value[[]string] { return &s.EnvoyAdmin }}
}

// Watch returns the rows about when a watch reads the source tree.
func Watch() []Row {
	return []Row{
		&setting[time.Duration]{about: about{name: "quiet-period", group: GroupWatch, usage: "publish once nothing in the tree " +
			"has changed for `TIME`, or after 2s of changes; on Linux one changed file goes out as soon as it is complete; " +
			"for a control plane, the default is 10ms"},
			kind: times, byDefault: 100 * time.Millisecond, law: aboveZero, into: func(s *Settings) *Value[time.Duration] { return &s.QuietPeriod }},
		&setting[time.Duration]{about: about{name: "rescan", group: GroupWatch, usage: "read the whole tree every `TIME`, even " +
			"without a file event; less often if that takes more than 0.05% of a CPU"},
			kind: times, byDefault: 30 * time.Second, law: aboveZero, into: func(s *Settings) *Value[time.Duration] { return &s.Rescan }},
		&setting[time.Duration]{about: about{name: "poll", group: GroupWatch, usage: "look for changes every `TIME`, as network " +
			"file systems need, which report no file events; 0s waits for events"},
			kind: times, law: notNegative, into: func(s *Settings) *Value[time.Duration] { return &s.Poll }},
	}
}

// retryHeld returns the row of --retry-held.
func retryHeld() Row {
	return &setting[bool]{about: about{name: "retry-held", group: GroupRun, usage: "publish once more a snapshot that is held because Envoy rejected it"},
		kind: boolean, into: func(s *Settings) *Value[bool] { return &s.RetryHeld }}
}

func format() Row {
	return &setting[string]{about: about{name: "format", group: GroupPublish, usage: "format of the " +
		"published files: `" + strings.Join(FormatNames(), "|") + "`"},
		kind: text, byDefault: render.JSON.Name, law: oneOfWords(FormatNames()...), into: func(s *Settings) *Value[string] { return &s.Format }}
}

func group() Row {
	return &setting[string]{about: about{name: "group", forClients: true, group: GroupPublish, usage: "`GROUP`, a name or a " +
		"number, that may read files with secrets (default: the group of the output directory)", outside: true,
		servedUsage: "`GROUP`, a name or a number, that may read files with secrets, and connect to Unix sockets (default: for " +
			"files the group of the output directory, for sockets that of the process)"},
		kind: text, into: func(s *Settings) *Value[string] { return &s.Group }}
}
