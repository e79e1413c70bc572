package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/check/fixes"
	"xdspub/check/scope"
	"xdspub/cmd/settings"
	"xdspub/internal/fspath"
	"xdspub/report"
	"xdspub/setup/grpcboot"
	"xdspub/source/decode"
	"xdspub/source/load"
)

func validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check a source tree, or a bootstrap and every file that it leads Envoy to",
		ArgsUsage: "PATH…|-",
		Description: `Lists what Envoy would reject, ignore or misread, with file and line. It changes no file unless
--fix is given, and asks no Envoy unless --envoy names a program to ask.

Examples:
  xdspub validate config/                       a directory of resources
  xdspub validate envoy.yaml                    a bootstrap, and every file that Envoy reads by it
  xdspub validate grpc.json                     a bootstrap of gRPC clients: JSON with xds_servers
  xdspub validate config/routes/a.yaml          one file, as part of its tree: the folder above with
                                                an xdspub.yaml, or the git work tree
  xdspub validate --changed-since main config/  the findings that a pull request brings
  xdspub validate --format json config/         for a program
  xdspub validate --format sarif --output r.sarif --format github config/
                                                several reports: one in a file, one printed
  xdspub validate --envoy auto config/          and ask the Envoy of this machine, too
  xdspub validate --fix --diff config/          the fixes that --fix would make, as a diff
  jsonnet clusters.jsonnet | xdspub validate -  standard input, of resources

Exit status: 0 no errors, 1 errors, 2 wrong usage, 3 could not run. xdspub explain RULE says
more about a finding.`,
		Flags:  options(settings.Validate()),
		Action: action(validateAction),
	}
}

func validateAction(c *call) error {
	collectLate()
	if c.NArg() == 0 || slices.Contains(c.Args().Slice(), "") {
		return usagef("validate needs a PATH: see %s", helpFor(c.Command.Name))
	}
	if i := slices.Index(c.Args().Slice(), "-"); i >= 0 && slices.Contains(c.Args().Slice()[i+1:], "-") {
		return usagef("- is given twice: standard input can be read only once")
	}
	for _, v := range []settings.Value[string]{c.Baseline, c.WriteBaseline, c.ChangedSince} { // as --baseline "$UNSET" in a shell
		if v.Given() && v.Value == "" {
			return usagef("--%s is empty", v.Name())
		}
	}
	reports, err := outputs(c)
	if err != nil {
		return err
	}
	if err := checkFixOptions(c, reports); err != nil {
		return err
	}
	if err := stdinFormatUsed(c); err != nil {
		return err
	}
	if err := c.Secrets.Check(); err != nil {
		return err
	}
	v := &validation{call: c, all: checkedTrees{ok: true}}
	if fixing(c) {
		v.fixes = fixes.New(c.FixUnsafe.Value)
		defer v.fixes.Close()
	}
	if err := v.checkAll(); err != nil {
		return err
	}
	if err := v.deliver(); err != nil {
		return err
	}
	if err := writeReports(c, reports, v.all.reportedOnly(c)); err != nil {
		return err
	}
	if v.all.Timings != nil {
		writeTimings(c.App.ErrWriter, v.all.Timings)
	}
	return v.verdict()
}

// verdict returns an error if a tree or a bootstrap is invalid, and prints a reason that the findings don't show.
func (v *validation) verdict() error {
	switch {
	case v.all.valid():
		return nil
	case v.all.ok:
		fmt.Fprintf(v.App.ErrWriter, "xdspub: exit status %d: the files still have the findings that the diff fixes\n", exitRefused)
	case v.all.Accepted():
		fmt.Fprintf(v.App.ErrWriter, "xdspub: exit status %d, because of --warnings-as-errors: %s\n", exitRefused, warningsThatRefuse(v.all.trees))
	}
	return &exit{status: exitRefused}
}

// writeTimings prints how long reading the tree and each rule took.
func writeTimings(w io.Writer, t *check.Timings) {
	var all time.Duration
	for _, r := range t.Rules.Sorted() {
		all += r.Took
	}
	fmt.Fprintf(w, "%10s  reading and decoding\n%10s  all rules, on all cores together\n", milliseconds(t.Load), milliseconds(all))
	for _, r := range t.Rules.Sorted() {
		fmt.Fprintf(w, "%10s  %s\n", milliseconds(r.Took), r.Code)
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// checkedTrees is the result for all named trees and bootstraps.
type checkedTrees struct {
	*check.Result // with the findings about all of them
	trees         []report.Tree
	variants      []variantsTable // with --variants
	ok            bool            // all trees and bootstraps are valid
	unfixed       bool            // with --diff: a tree or a bootstrap is invalid without the diff
}

// valid reports whether all trees and bootstraps are valid as they are on disk.
func (t checkedTrees) valid() bool { return t.ok && !t.unfixed }

// validation is a run of validate.
type validation struct {
	*call
	unsaved  unsaved
	stdin    *load.Input // nil before standard input is read
	fixes    *fixes.Run  // nil without --fix
	unsafe   int         // the number of findings with unsafe fixes that are not made
	known    *known
	followed bool // a bootstrap of Envoy is among the paths
	all      checkedTrees
}

// checkAll judges each tree and each bootstrap among the arguments, with its own settings.
func (v *validation) checkAll() error {
	scopes, err := v.scopes()
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		v.all.Result = &check.Result{}
		return nil
	}
	for _, tree := range scopes {
		if err := v.judge(tree); err != nil {
			return err
		}
	}
	return v.end()
}

// scopes reads the unsaved text and the baseline, and returns the trees and bootstraps of the arguments.
func (v *validation) scopes() (scopes []scope.Tree, err error) {
	if v.unsaved, err = readUnsaved(v.call); err != nil {
		return nil, err
	}
	if v.fixes != nil && v.unsaved.path != "" {
		v.fixes.Add(v.unsaved.path, v.unsaved.text)
	}
	if v.known, err = readKnown(v.call); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(v.Args().Slice(), settings.IsRemote); i >= 0 {
		if v.NArg() > 1 {
			return nil, usagef("%s is no path: check it in a call of its own", v.Args().Get(i))
		}
		return []scope.Tree{{Path: v.Args().First()}}, follow(v.call, v.Args().First(), nil)
	}
	paths, err := withoutRemoved(v.call)
	if err != nil {
		return nil, err
	}
	scopes = scope.Trees(paths, func(path string) bool { return isBootstrap(v.call, path) || grpcboot.Holds(path) })
	scopes = withoutOthers(v.call, scopes)
	return scopes, onlyInTrees(v.call, scopes)
}

// judge judges a tree or a bootstrap, and adds the result to v.all.
func (v *validation) judge(tree scope.Tree) error {
	of, o, err := optionsOfTree(v.call, tree.Path)
	if err != nil {
		return err
	}
	checked, err := v.narrowed(o, tree)
	if err != nil {
		return err
	}
	strict := of.WarningsAsErrors.Value
	if v.fixes != nil {
		v.all.unfixed = v.all.unfixed || v.Diff.Value && checked.Invalid(strict)
		if checked, err = v.fix(checked, o, tree); err != nil {
			return err
		}
	}
	v.all.ok = v.all.ok && !checked.Invalid(strict)
	v.all.trees = append(v.all.trees, reported(tree.Path, checked, strict))
	if v.Variants.Value {
		v.all.variants = append(v.all.variants, tablesOf(tree.Path, checked, o)...)
	}
	if v.all.Result == nil {
		v.all.Result = checked
	} else {
		v.all.Merge(checked)
	}
	return nil
}

// narrowed judges a tree or a bootstrap, and removes the findings that the command line excludes.
func (v *validation) narrowed(o check.Options, tree scope.Tree) (*check.Result, error) {
	checked, err := v.check(o)
	if err != nil {
		return nil, err
	}
	v.known.leaveOut(checked)
	return checked, narrow(v.call, checked, o, tree)
}

// check judges a source tree, a bootstrap of Envoy or a bootstrap of gRPC.
func (v *validation) check(o check.Options) (*check.Result, error) {
	switch {
	case o.Path == "-":
	case grpcboot.Holds(o.Path):
		return checkGRPCBootstrap(v.call, o, &v.unsaved)
	case decode.HoldsBootstrap(o.Path):
		v.followed = true
		return v.checkBootstrap(o, false)
	case isBootstrapByRoot(v.call, o.Path):
		v.followed = true
		return v.checkBootstrap(o, true)
	}
	return v.checkTree(o)
}

// optionsOfTree returns the settings of c for a tree or a bootstrap, and the options for judging it.
func optionsOfTree(c *call, path string) (v *call, o check.Options, err error) {
	if v, o, err = settingsAndSource(c, path); err != nil {
		return v, o, err
	}
	if len(o.Client.Parameters) == 0 {
		o.Client = nil // any
	}
	if o.Targets, err = checkedTargets(v, path); err != nil {
		return v, o, err
	}
	o.Timings, o.StubSecrets = c.Timings.Value, c.Secrets.Value == settings.SecretsStub
	o.Oracle, err = oracleOf(v, o.Rules)
	return v, o, err
}

// end returns an error for options that had nothing to act on, and finishes the baseline.
func (v *validation) end() error {
	if err := v.unsaved.unused(v.App.ErrWriter, v.Args().Slice()); err != nil {
		return err
	}
	if v.Root.Given() && !v.followed {
		return usagef("--root is for a bootstrap, and %s is not one", strings.Join(v.Args().Slice(), ", "))
	}
	if v.Variants.Value && v.all.variants == nil {
		return usagef("--variants needs clients: write targets into xdspub.yaml, or give --param")
	}
	return v.known.finish(v.call)
}

// isBootstrap reports whether path leads to a bootstrap of Envoy.
func isBootstrap(c *call, path string) bool {
	return decode.HoldsBootstrap(path) || isBootstrapByRoot(c, path)
}

// isBootstrapByRoot reports whether path leads to a file and --root is given. --root is only for bootstraps.
func isBootstrapByRoot(c *call, path string) bool { return c.Root.Given() && fspath.IsFile(path) }

// checkTree judges a source tree, one of its files, or standard input.
func (v *validation) checkTree(o check.Options) (*check.Result, error) {
	if o.Path == "-" {
		if err := hasNoHistory(v.call, "standard input"); err != nil {
			return nil, err
		}
		in, err := v.standardInput()
		if err != nil {
			return nil, err
		}
		o.Input = &in
	}
	if err := v.unsaved.inTree(&o); err != nil {
		return nil, err
	}
	if v.fixes != nil {
		o.Overlay = v.fixes.Texts()
	}
	defer showProgress(v.call, "checking "+o.Path)()
	ctx, stop := context.WithCancel(v.Context)
	defer stop()
	runRemote(ctx, v.call, nil)
	return check.Once(ctx, o)
}

// checkBootstrap judges a bootstrap and the files that it leads Envoy to. byRoot means that the file counts as
// a bootstrap only because of --root.
func (v *validation) checkBootstrap(o check.Options, byRoot bool) (*check.Result, error) {
	if o.Bootstrap != "" {
		return nil, usagef("--bootstrap %s is for a source tree, and %s is a bootstrap", o.Bootstrap, o.Path)
	}
	if v.Profile.Given() {
		return nil, usagef("--profile is for a source tree, and %s is a bootstrap", o.Path)
	}
	o.Profiles = nil
	if err := v.unsaved.inBootstrap(o.Path); err != nil {
		return nil, err
	}
	if err := hasNoHistory(v.call, o.Path); err != nil {
		return nil, err
	}
	of := check.BootstrapOptions{Rules: o.Rules, Path: o.Path, Root: v.Root.Value, ByRoot: byRoot}
	if v.fixes != nil {
		of.Overlay = v.fixes.Texts()
	}
	defer showProgress(v.call, "checking "+o.Path)()
	return check.Bootstrap(v.Context, of)
}

// checkGRPCBootstrap judges a bootstrap of gRPC.
func checkGRPCBootstrap(c *call, o check.Options, u *unsaved) (*check.Result, error) {
	for _, is := range []settings.Origin{c.Bootstrap.Origin, c.Profile.Origin, c.Root.Origin, c.Envoy.Origin, c.EnvoyMode.Origin} {
		if is.Given() {
			return nil, usagef("--%s is not for %s, which is a bootstrap of gRPC clients", is.Name(), o.Path)
		}
	}
	if err := u.inBootstrap(o.Path); err != nil {
		return nil, err
	}
	if err := hasNoHistory(c, o.Path); err != nil {
		return nil, err
	}
	return check.GRPCBootstrapFile(o.Path, o.Rules)
}
