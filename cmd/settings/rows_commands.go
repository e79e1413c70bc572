package settings

import (
	"slices"
	"strings"
	"time"
)

func rows(rows ...Row) []Row { return rows }

// Validate returns the rows of validate.
func Validate() []Row {
	return slices.Concat(Source(), Upstream(), FromStore(), baseline(), oracle(), fix(), rows(
		target(),
		&setting[bool]{about: about{name: "variants", group: GroupPrint,
			usage: "print also which variant of each resource the clients of each target get, or the client of --param; " +
				"as text or JSON", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Variants }},
		&setting[[]string]{about: about{name: "only", group: GroupPrint, usage: "print only findings about `PATH`, a file or a " +
			"folder of the tree; references are followed through all of the tree", noVariable: true},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.Only }},
		&setting[string]{about: about{name: "changed-since", group: GroupPrint,
			usage: "print only findings in files that have changed since the git revision `REV`, and findings that the " +
				"tree of REV does not have", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.ChangedSince }},
		&setting[string]{about: about{name: "secrets", group: GroupRules,
			usage: "files of certificates, keys and other secrets: `read|stub`; read: a missing file is an error; stub: " +
				"a file may be missing, as in CI", noVariable: true},
			kind: text, byDefault: SecretsRead, law: oneOfWords(SecretsRead, SecretsStub), into: func(s *Settings) *Value[string] { return &s.Secrets }},
		&setting[string]{about: about{name: "root", group: GroupSource, usage: "Envoy's working directory `DIR`: relative paths " +
			"in a bootstrap start there (default: the current directory)", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Root }},
		stdinFormat(),
		&setting[string]{about: about{name: "stdin-filename", group: GroupSource, usage: "check the tree with standard input in " +
			"place of its `FILE`, as an editor does with unsaved text; FILE need not exist", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.StdinFilename }},
		reportFormat(),
		&setting[[]string]{about: about{name: "output", group: GroupPrint, usage: "write the findings in the --format before it " +
			"to `FILE` (- is standard output)", noVariable: true},
			kind: filePaths, into: func(s *Settings) *Value[[]string] { return &s.ReportOutput }},
		maxFindings(), color(), minSeverity(), quiet(),
		&setting[bool]{about: about{name: "timings", group: GroupPrint, usage: "print on standard error how long each rule took, " +
			"the slowest first", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Timings }},
	))
}

// The values of --secrets.
const (
	SecretsRead = "read"
	SecretsStub = "stub"
)

func fix() []Row {
	return rows(
		&setting[bool]{about: about{name: "fix", group: GroupRun, usage: "make the fixes of findings in the files, so far as they are " +
			"safe: Envoy reads the same, or the text can only be a misspelling; then check the files again", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Fix }},
		&setting[bool]{about: about{name: "fix-unsafe", group: GroupRun, usage: "make all fixes of findings, also those that may " +
			"not be what you mean", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.FixUnsafe }},
		&setting[bool]{about: about{name: "diff", group: GroupRun, usage: "print the fixes as a unified diff, and write no file", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Diff }},
	)
}

func baseline() []Row { // without variables: a file is for one call
	return rows(
		&setting[string]{about: about{name: "baseline", group: GroupPrint,
			usage: "leave out the findings in `FILE`, which --write-baseline has written: they are neither printed nor " +
				"counted", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Baseline }},
		&setting[string]{about: about{name: "write-baseline", group: GroupPrint, usage: "write all findings to `FILE`, for " +
			"--baseline, instead of printing them", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.WriteBaseline }},
	)
}

// Render returns the rows of render.
func Render() []Row {
	return slices.Concat(published(), oracle(), rows(
		maxFindings(), color(), retryHeld(), quiet(), logFormat(), logLevel(),
		reason(), confirmWithin(),
		&setting[bool]{about: about{name: "dry-run", group: GroupRun, usage: "show what would be published, step by step, and write nothing"},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.DryRun }},
	))
}

// published returns the rows that render and watch share.
func published() []Row {
	return slices.Concat(Source(), Upstream(), FromStore(), rows(target(), allOrNothing()), Publish(), Confirm())
}

// Watched returns the rows of watch.
func Watched() []Row {
	return slices.Concat(published(), oracle(), Watch(), Hooks(), Operations(), rows(whileRefused(), MaxStale(), Store()[0], rolloutCheck(),
		Machine(), Label(), confirmWithin(), maxFindings(), color(), retryHeld(), quiet(), logFormat(), logLevel(),
		&setting[bool]{about: about{name: "once", group: GroupRun, usage: "publish once and exit, like render"},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Once }},
	))
}

// Served returns the rows of serve.
func Served() []Row {
	list := slices.Concat(Serve(), Source(), Upstream(), FromStore(), Publish(), Confirm(), Watch(), Hooks(), oracle(), rows(
		whileRefused(), AggregateBy(), MaxStale(), Machine(), Label(), confirmWithin(), maxFindings(), retryHeld(), quiet(), logFormat(), logLevel(),
	))
	for i, r := range list {
		list[i] = r.served()
	}
	return list
}

// Status returns the rows of status.
func Status() []Row {
	return slices.Concat(Source(), AskedServe(), askedStore(), rows(
		target(), storeTarget(),
		&setting[string]{about: about{name: "out", group: GroupPublish, usage: "output `DIR` of render, watch or serve, or the directory of --state of " +
			"serve (required without --serve and --store)"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		envoyAdmin(),
		printFormat("print the status as `text|json`"),
	))
}

// RolloutStatus returns the rows of rollout status.
func RolloutStatus() []Row {
	return append(askedStore(), storeTarget(), printFormat("print the rollouts as `text|json`"))
}

// DecideRollout returns the rows of rollout pause, resume and abort.
func DecideRollout() []Row {
	return append(askedStore(), storeTarget(), reasonOf("none given"), printFormat("print the rollouts as `text|json`"))
}

// Pause returns the rows of pause.
func Pause() []Row {
	return rows(
		outOfDecision(),
		&setting[string]{about: about{name: "reason", group: GroupRun, usage: "why, as `TEXT`, which every view shows (required)", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Reason }},
		&setting[time.Duration]{about: about{name: "for", group: GroupRun, usage: "end the pause after `TIME`, even if a clock is set meanwhile; " +
			"without --for only resume ends it", noVariable: true},
			kind: times, into: func(s *Settings) *Value[time.Duration] { return &s.For }},
		&setting[bool]{about: about{name: "replace", group: GroupRun, usage: "replace the pause of another operator", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Replace }},
		printFormat("print the result as `text|json`"),
	)
}

// Resume returns the rows of resume.
func Resume() []Row {
	return rows(
		outOfDecision(),
		&setting[string]{about: about{name: "reason", group: GroupRun, usage: "why, as `TEXT`; also publishes during a freeze", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Reason }},
		printFormat("print the result as `text|json`"),
	)
}

// Rollback returns the rows of rollback. The output directory knows its format and the path for Envoy.
func Rollback() []Row {
	return slices.Concat(rows(
		outOfDecision(),
		&setting[string]{about: about{name: "at", group: GroupRun, usage: "roll back to the snapshot that was out at `TIME`, such as 2h (ago), 14:00, " +
			"yesterday 14:00 or 2026-03-04T14:00:00Z", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.At }},
		&setting[string]{about: about{name: "to-revision", group: GroupRun, usage: "roll back to the git commit `REV`", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.ToRevision }},
		reasonOf("rollback"),
		&setting[bool]{about: about{name: "with-secrets", group: GroupRun, usage: "roll back SDS secrets, too; by default, they stay as they are", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.WithSecrets }},
		maxFindings(), color(), quiet(), logFormat(), logLevel(),
		printFormat("print the result as `text|json`"),
	), without(Source(), "ignore", "allow-path"), without(Publish(), "out", "envoy-path", "format"), Confirm())
}

// Approve returns the rows of approve.
func Approve() []Row {
	return rows(
		outOfDecision(),
		reasonOf("approve"),
		&setting[bool]{about: about{name: "withdraw", group: GroupRun, usage: "withdraw the unused approval of the change", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Withdraw }},
		printFormat("print the result as `text|json`"),
	)
}

// ConfirmTrial returns the rows of confirm.
func ConfirmTrial() []Row {
	return rows(outOfDecision(), reasonOf("confirmed"), printFormat("print the result as `text|json`"))
}

// ExtendTrial returns the rows of extend.
func ExtendTrial() []Row {
	return rows(outOfDecision(), reasonOf("extended"), printFormat("print the result as `text|json`"))
}

// CancelTrial returns the rows of cancel, which publishes as rollback does, without guards.
func CancelTrial() []Row {
	return slices.Concat(rows(outOfDecision(), reasonOf("cancelled")), without(Rollback(),
		"out", "at", "to-revision", "reason", "with-secrets", "max-removal", "allow-removal"))
}

// reasonOf returns the row of --reason of a command with a usual reason.
func reasonOf(usual string) Row {
	return &setting[string]{about: about{name: "reason", group: GroupRun, usage: "why, as `TEXT`, which every view shows", noVariable: true},
		kind: text, byDefault: usual, into: func(s *Settings) *Value[string] { return &s.Reason }}
}

// without returns rows without the rows of some names.
func without(all []Row, names ...string) []Row {
	return slices.DeleteFunc(all, func(r Row) bool { return slices.Contains(names, r.Name()) })
}

// outOfDecision returns the row of --out of a command by which an operator decides.
func outOfDecision() Row {
	return &setting[string]{about: about{name: "out", group: GroupPublish, usage: "output `DIR` of render, watch or serve, with targets that of " +
		"one target; or the directory of --state of serve (required)"},
		kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }}
}

// Doctor returns the rows of doctor.
func Doctor() []Row {
	return rows(
		config(), descriptorSet(), target(),
		&setting[string]{about: about{name: "out", group: GroupPublish, usage: "output `DIR` of render, watch or serve (required)"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		envoyAdmin(),
		&setting[string]{about: about{name: "envoy-user", group: GroupAcks, usage: "`USER` as whom Envoy runs, a name or UID:GID " +
			"(default: the user of the process)"},
			kind: text, into: func(s *Settings) *Value[string] { return &s.EnvoyUser }},
		&setting[bool]{about: about{name: "fix", group: GroupRun, usage: "remove what killed processes have left", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Fix }},
		&setting[bool]{about: about{name: "prune", group: GroupRun, usage: "remove the folders of resources that are no longer " +
			"published, unless an Envoy may watch", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Prune }},
		&setting[string]{about: about{name: "bundle", group: GroupPrint, usage: "also write what a bug report needs to `FILE`, a .tar.gz: " +
			"settings, states, names and sizes of files, without their content", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Bundle }},
		printFormat("print the findings as `text|json`"), color(),
	)
}

// History returns the rows of history.
func History() []Row {
	return rows(
		&setting[string]{about: about{name: "out", group: GroupPublish, usage: "output `DIR` of render, watch or serve, with targets that " +
			"of one target; or the directory of --state of serve (required)"},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		&setting[string]{about: about{name: "since", group: GroupPrint, usage: "show only the snapshots since `TIME`, such as 2h, 14:00, " +
			"yesterday 14:00 or 2026-03-04T14:00:00Z", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Since }},
		at(),
		printFormat("print as `text|json`"),
		descriptorSet(),
	)
}

// at returns the row of --at.
func at() Row {
	return &setting[string]{about: about{name: "at", group: GroupPrint, usage: "show the snapshot that was out at `TIME`, such as 2h " +
		"(ago), 14:00, yesterday 14:00 or 2026-03-04T14:00:00Z", noVariable: true},
		kind: text, into: func(s *Settings) *Value[string] { return &s.At }}
}

// BootstrapEnvoy returns the rows of bootstrap envoy.
func BootstrapEnvoy() []Row {
	return slices.Concat(Source(), rows(target()), bootstrapEnvoy(), rows(maxFindings(), color()))
}

// BootstrapGRPC returns the rows of bootstrap grpc.
func BootstrapGRPC() []Row {
	return slices.Concat(Source(), contentGRPC(), rows(resolve(), bootstrapOutput(), maxFindings(), color()))
}

// Import returns the rows of import.
func Import() []Row {
	return slices.Concat(Upstream(), FromStore(), rows(
		&setting[string]{about: about{name: "root", group: GroupSource, usage: "`DIR` that Envoy is started in, where relative " +
			"paths begin (default: the current one)", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Root }},
		param(), descriptorSet(), maxFindings(), color(),
	))
}

// Convert returns the rows of convert.
func Convert() []Row {
	return rows(
		&setting[string]{about: about{name: "to", usage: "format to write: `" + strings.Join(FormatNames(), "|") + "` (required)", noVariable: true},
			kind: text, law: oneOfWords(FormatNames()...), into: func(s *Settings) *Value[string] { return &s.To }},
		descriptorSet(), stdinFormat(),
		&setting[string]{about: about{name: "output", group: GroupPrint, usage: "write to `FILE` (- is standard output)", noVariable: true},
			kind: text, byDefault: "-", into: func(s *Settings) *Value[string] { return &s.Output }},
		maxFindings(), color(),
	)
}

// Rules returns the rows of rules.
func Rules() []Row {
	return rows(printFormat("print a line for each rule, or JSON with the whole texts: `text|json`"))
}

// ExplainParams returns the rows of explain-params.
func ExplainParams() []Row {
	return rows(
		config(), ignore(), allowPath(), param(), maxFindings(), color(),
		clientTarget(),
		&setting[[]string]{about: about{name: "against", group: GroupSource, usage: "a dynamic parameter `KEY=VALUE` of another " +
			"client, to show what differs between the two", noVariable: true},
			kind: list, into: func(s *Settings) *Value[[]string] { return &s.Against }},
		&setting[string]{about: about{name: "against-target", group: GroupSource, usage: "the other client is one of the target `NAME`", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.AgainstTarget }},
		printFormat("print a table or a JSON object: `text|json`"),
	)
}

// clientTarget returns the row of --target for a command that is about one client.
func clientTarget() Row {
	return &setting[string]{about: about{name: "target", group: GroupSource, usage: "the client is one of the target `NAME` of the " +
		"setting targets", noVariable: true},
		kind: text, into: func(s *Settings) *Value[string] { return &s.ClientTarget }}
}

// GraphFormats returns the values of --format of graph.
func GraphFormats() []string { return []string{"svg", "mermaid", "dot"} }

// Graph returns the rows of graph.
func Graph() []Row {
	return slices.Concat(Source(), rows(
		clientTarget(),
		&setting[string]{about: about{name: "out", group: GroupSource, usage: "draw what is published in the output `DIR`, in place of SRC", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		&setting[string]{about: about{name: "changed-since", group: GroupSource, usage: "mark what has changed since the git revision `REV`", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.ChangedSince }},
		&setting[string]{about: about{name: "format", group: GroupPrint, usage: "write `" + strings.Join(GraphFormats(), "|") + "`: an image, a diagram for " +
			"Markdown, or the language of Graphviz", noVariable: true},
			kind: text, byDefault: "svg", law: oneOfWords(GraphFormats()...), into: func(s *Settings) *Value[string] { return &s.GraphFormat }},
		&setting[string]{about: about{name: "focus", group: GroupPrint, usage: "draw this `RESOURCE`, the resources that lead to it, and " +
			"the resources that it leads to: NAME, or API/NAME such as CDS/web", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.Focus }},
		&setting[bool]{about: about{name: "all", group: GroupPrint, usage: "draw all nodes; by default, groups count those beyond 300", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.All }},
		maxFindings(), color(), quiet(),
	))
}

// Diff returns the rows of diff.
func Diff() []Row {
	return slices.Concat(Source(), Upstream(), rows(
		clientTarget(),
		&setting[string]{about: about{name: "out", group: GroupSource, usage: "compare with what is published in the output `DIR`; with --from or --at, " +
			"with an entry of its history", noVariable: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.Out }},
		&setting[string]{about: about{name: "from", group: GroupSource, usage: "compare with SRC at the git revision `REV`, such as origin/main; with --out, " +
			"with the entry whose ID begins with REV", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.FromRevision }},
		&setting[string]{about: about{name: "to", group: GroupSource, usage: "compare --from with SRC at the git revision `REV`, in place of the " +
			"files of SRC; with --out, --from or --at with the entry whose ID begins with REV", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.ToRevision }},
		&setting[string]{about: about{name: "at", group: GroupSource, usage: "with --out, compare with the entry that was published at `TIME`, such as 2h (ago), " +
			"14:00, yesterday 14:00 or 2026-03-04T14:00:00Z", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.At }},
		&setting[string]{about: about{name: "envoy-admin", group: GroupSource, usage: "compare with what a running Envoy has: its admin `URL`, " +
			"http://HOST:PORT or unix:PATH", noVariable: true},
			kind: text, into: func(s *Settings) *Value[string] { return &s.RunningEnvoy }},
		eds(), inotifyBudget(),
		&setting[string]{about: about{name: "format", group: GroupPrint, usage: "print `" + strings.Join(DiffFormats(), "|") + "`; markdown: for the " +
			"comment of a pull request", noVariable: true},
			kind: text, byDefault: "text", law: oneOfWords(DiffFormats()...), into: func(s *Settings) *Value[string] { return &s.DiffFormat }},
		&setting[bool]{about: about{name: "side-by-side", group: GroupPrint, usage: "print the old value of a field on the left, and the new value on " +
			"the right, in lines of $COLUMNS", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.SideBySide }},
		&setting[bool]{about: about{name: "all", group: GroupPrint, usage: "print all effects and fields as text; a terminal shows the first " +
			"50 effects of a kind, and the first 50 fields of a resource", noVariable: true},
			kind: boolean, into: func(s *Settings) *Value[bool] { return &s.All }},
		maxFindings(), color(), quiet(),
	))
}

// DiffFormats returns the values of --format of diff.
func DiffFormats() []string { return []string{"text", "json", "markdown"} }

// printFormat returns the row of --format of other commands. The row has no variable, because XDSPUB_FORMAT is
// the format of published files.
func printFormat(usage string) Row {
	return &setting[string]{about: about{name: "format", group: GroupPrint, usage: usage, noVariable: true},
		kind: text, byDefault: "text", law: oneOfWords("text", "json"), into: func(s *Settings) *Value[string] { return &s.PrintFormat }}
}
