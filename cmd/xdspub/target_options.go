package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/watch"
)

func targetFlag() cli.Flag {
	return &cli.StringSliceFlag{Category: groupSource, Name: "target", EnvVars: env("target"), Usage: "only the target `NAME` of the setting targets (default: all of them)"}
}

// targetFlags are those of commands that publish.
func targetFlags() []cli.Flag { return []cli.Flag{targetFlag(), allOrNothingFlag()} }

func allOrNothingFlag() cli.Flag {
	return &cli.BoolFlag{Category: groupPublish, Name: "all-or-nothing", EnvVars: env("all-or-nothing"), Usage: "publish nothing for any target while the source tree has errors for one", DisableDefaultText: true}
}

// chosenTargets returns the targets of a settings file that a command is about, none where the file has none.
func chosenTargets(v values) ([]target, error) {
	all, _ := v.file[targetsSetting].([]target)
	named := v.c.StringSlice("target")
	if len(all) > 0 && len(value(v, "param", v.c.StringSlice)) > 0 {
		return nil, usagef("%s: there are targets, each with its params, and param is for a source tree without: name a target by --target, or write one with these", v.at[targetsSetting].Position)
	}
	for _, name := range named {
		if _, err := targetNamed(v, "target", name); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(t target) bool { return !slices.Contains(named, t.name) }), nil
}

// targetNamed returns the target whose name a flag gives.
func targetNamed(v values, flag, name string) (target, error) {
	all, _ := v.file[targetsSetting].([]target)
	names := make([]string, len(all))
	for i, t := range all {
		if names[i] = t.name; t.name == name {
			return t, nil
		}
	}
	if len(all) == 0 {
		return target{}, v.invalid(flag, name, "the settings have no targets")
	}
	return target{}, v.invalid(flag, name, unknownTarget(names, name))
}

// oneTarget returns the only target that a command names.
func oneTarget(v values) (target, error) {
	targets, err := chosenTargets(v)
	if err == nil && len(targets) != 1 {
		err = usagef("--target is given twice: a client is of one target")
	}
	if err != nil {
		return target{}, err
	}
	return targets[0], nil
}

// targetOfNothing says that --target is given without a source tree.
func targetOfNothing() error {
	return usagef("--target is for SRC, a source tree whose settings have targets, and none is given")
}

// valuesOfTarget returns the settings of a command that may name a target of SRC.
func valuesOfTarget(c *cli.Context) (values, error) {
	v := values{c: c}
	if !c.IsSet("target") {
		return v, nil
	}
	if c.NArg() != 1 {
		return v, targetOfNothing()
	}
	v, err := settings(c, c.Args().First())
	if err != nil {
		return v, err
	}
	t, err := oneTarget(v)
	return v.ofTarget(t), err
}

// unknownTarget says which target may be meant by a name that none has.
func unknownTarget(names []string, name string) string {
	if len(names) == 1 {
		return "the only target is " + names[0]
	}
	if len(names) > 10 {
		if meant := nearest(names, name); meant != "" {
			return fmt.Sprintf("did you mean %s?", meant)
		}
		return "the setting targets has those that there are"
	}
	return oneOf(names, name)
}

// ofTarget returns the settings as they are for a target.
func (v values) ofTarget(t target) values {
	v.file, v.at = maps.Clone(v.file), maps.Clone(v.at)
	v.file["out"] = v.outOf(t)
	for name, x := range t.settings {
		if !v.c.IsSet(name) {
			v.file[name], v.at[name] = x, v.placeIn(t, name)
		}
	}
	if path := value(v, "envoy-path", v.c.String); path != "" {
		v.file["envoy-path"] = filepath.ToSlash(filepath.Join(path, t.output))
	}
	return v
}

// outOf returns the output directory of a target. Without --out no command writes into it.
func (v values) outOf(t target) string {
	if filepath.IsAbs(t.output) {
		return t.output
	}
	return filepath.Join(value(v, "out", v.c.Path), t.output)
}

// checkedTargets returns the targets for which a source tree is judged, none where it has none.
func checkedTargets(v values, source string) (list []check.Target, err error) {
	targets, err := chosenTargets(v)
	for _, t := range targets {
		o, err := sourceOptions(v.ofTarget(t), source)
		if err != nil {
			return nil, err
		}
		list = append(list, check.Target{Name: t.name, Client: t.client, Profiles: o.Profiles})
	}
	return list, err
}

// placeIn returns where a setting of a target stands.
func (v values) placeIn(t target, name string) (s load.Setting) {
	for _, part := range v.at[targetsSetting].Parts {
		for _, field := range part.Parts {
			if part.Key == t.name && field.Key == name {
				s = load.Setting{SettingValue: field, ValueAt: field.Position}
			}
		}
	}
	return s
}

// apart returns an error where two targets can't be published side by side, or share what only one can have.
func (v values) apart(targets []target) error {
	for i, t := range targets {
		for _, other := range targets[:i] {
			a, b := fspath.Resolve(v.outOf(t)), fspath.Resolve(v.outOf(other))
			if fspath.Within(a, b) || fspath.Within(b, a) {
				return usagef("the output directory %s of target %s is in the way of that of target %s: %s", v.outOf(t), t.name, other.name, v.outOf(other))
			}
		}
	}
	if len(targets) < 2 {
		return nil
	}
	for _, name := range []string{"envoy-admin", "envoy-log"} {
		if len(value(v, name, v.c.StringSlice)) > 0 {
			return usagef("%s: an Envoy reads the files of one target: write envoy-admin into that target, in a file that --config names, or choose one by --target", name)
		}
	}
	if path := value(v, "envoy-path", v.c.String); path != "" {
		for _, t := range targets {
			if !filepath.IsLocal(t.output) {
				return usagef("envoy-path is the path of --out, and target %s is published outside of that, in %s", t.name, t.output)
			}
		}
	}
	return nil
}

// targetsEnded is how a command ended for its targets.
type targetsEnded struct{ errs []error }

// add takes up how it ended for a target. It reports whether that is an error.
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

// err returns the error of the command. Several are printed, and it has the highest exit status.
func (e *targetsEnded) err(stderr io.Writer) error {
	if len(e.errs) == 0 {
		return nil
	}
	if len(e.errs) == 1 {
		return e.errs[0]
	}
	status := exitOK
	for _, err := range e.errs {
		status = max(status, said(err, stderr))
	}
	return &exit{status: status}
}
