package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/internal/fspath"
	"xdspub/watch"
)

// chosenTargets returns the targets that --target names; without --target, all targets of the settings file;
// nil without targets.
func chosenTargets(v *call) ([]settings.Target, error) {
	all := v.Targets.Value
	named := v.Target.Value
	if len(all) > 0 && len(v.Param.Value) > 0 {
		return nil, usagef("%s: param can't be combined with targets, which have their own params: choose a target by "+
			"--target, or write a target with these params", v.Targets.Position())
	}
	for _, name := range named {
		if _, err := targetNamed(v, v.Target.Origin, name); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(t settings.Target) bool { return !slices.Contains(named, t.Name) }), nil
}

// targetNamed returns the target with a name. given is the option that has the name.
func targetNamed(v *call, given settings.Origin, name string) (settings.Target, error) {
	all := v.Targets.Value
	names := make([]string, len(all))
	for i, t := range all {
		if names[i] = t.Name; t.Name == name {
			return t, nil
		}
	}
	if len(all) == 0 {
		return settings.Target{}, given.Invalid(name, "the settings have no targets")
	}
	return settings.Target{}, given.Invalid(name, unknownTarget(names, name))
}

// oneTarget returns the target of --target, which must be given once.
func oneTarget(v *call) (settings.Target, error) {
	targets, err := chosenTargets(v)
	if err == nil && len(targets) != 1 {
		err = usagef("--target is given twice: a client belongs to one target")
	}
	if err != nil {
		return settings.Target{}, err
	}
	return targets[0], nil
}

// targetWithoutSource returns the error for --target without a source tree.
func targetWithoutSource() error {
	return usagef("--target needs SRC, the source tree whose settings have the target")
}

// valuesOfTarget returns a copy of the call with the settings of the target of --target, from the settings file
// of SRC. Without --target, valuesOfTarget returns c.
func valuesOfTarget(c *call) (*call, error) {
	if !c.Target.Given() {
		return c, nil
	}
	if c.NArg() != 1 {
		return c, targetWithoutSource()
	}
	v, err := c.withFile(c.Args().First())
	if err != nil {
		return v, err
	}
	t, err := oneTarget(v)
	return v.with(v.OfTarget(t)), err
}

// unknownTarget returns the remedy for the unknown name of a target.
func unknownTarget(names []string, name string) string {
	if len(names) == 1 {
		return "the only target is " + names[0]
	}
	if len(names) > 10 {
		if meant := settings.Nearest(names, name); meant != "" {
			return fmt.Sprintf("did you mean %s?", meant)
		}
		return "the setting targets lists all targets"
	}
	return settings.OneOf(names, name)
}

// checkedTargets returns the targets for which a check judges the source tree; nil without targets.
func checkedTargets(v *call, source string) (list []check.Target, err error) {
	targets, err := chosenTargets(v)
	for _, t := range targets {
		o, err := sourceOptions(v.with(v.OfTarget(t)), source)
		if err != nil {
			return nil, err
		}
		list = append(list, check.Target{Name: t.Name, Client: t.Client, Profiles: o.Profiles})
	}
	return list, err
}

// checkApart returns an error if the output directories of two targets overlap, or if several targets share a
// setting that only one target can have.
func checkApart(v *call, targets []settings.Target) error {
	for i, t := range targets {
		for _, other := range targets[:i] {
			a, b := fspath.Resolve(v.OutOf(t)), fspath.Resolve(v.OutOf(other))
			if fspath.Within(a, b) || fspath.Within(b, a) {
				return usagef("the output directory %s of target %s overlaps the output of target %s: %s", v.OutOf(t), t.Name, other.Name, v.OutOf(other))
			}
		}
	}
	if len(targets) < 2 {
		return nil
	}
	for _, of := range []settings.Value[[]string]{v.EnvoyAdmin, v.EnvoyLog} {
		if len(of.Value) > 0 {
			return usagef("%s: an Envoy reads the files of one target: write envoy-admin into that target, in a file that "+
				"--config names, or choose one by --target", of.Name())
		}
	}
	if path := v.EnvoyPath.Value; path != "" {
		for _, t := range targets {
			if !filepath.IsLocal(t.Output) {
				return usagef("envoy-path is the path of --out as Envoy sees it, but target %s is published outside of --out, in %s", t.Name, t.Output)
			}
		}
	}
	return nil
}

// targetsEnded collects the errors of a command for its targets.
type targetsEnded struct{ errs []error }

// add records the error of a target, if err is not nil, and reports whether it is not nil.
func (e *targetsEnded) add(o watch.Options, err error) bool {
	if err != nil && o.Target != "" {
		if said, ok := err.(*exit); !ok || said.err != nil {
			err = fmt.Errorf("target %s: %w", o.Target, err)
		}
	}
	if err != nil {
		e.errs = append(e.errs, err)
	}
	return err != nil
}

// err returns the error of the command; nil without errors. If there are several errors, err prints them, and
// returns an exit with their highest status.
func (e *targetsEnded) err(stderr io.Writer) error {
	if len(e.errs) == 0 {
		return nil
	}
	if len(e.errs) == 1 {
		return e.errs[0]
	}
	status := exitOK
	for _, err := range e.errs {
		status = max(status, printError(err, stderr))
	}
	return &exit{status: status}
}
