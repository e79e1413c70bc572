package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/source/load"
	"xdspub/watch"
	"xdspub/watch/control"
)

// handOver has the watch that publishes into the output directory try again what is
// held, and prints what came of it. done is false where no watch answers; err then
// says why.
func handOver(v values, o watch.Options) (done bool, err error) {
	running, err := control.Ask(v.c.Context, o.Out)
	if err != nil {
		return false, err
	}
	source, err := filepath.Abs(o.Source.Path)
	if err != nil {
		return true, err
	}
	fmt.Fprintf(v.c.App.ErrWriter, "asking process %d, which watches %s, to retry what is held\n", running.PID, running.Source)
	result, err := control.Retry(v.c.Context, o.Out, control.RetryHeld{Source: source, Flags: given(v)})
	if conflict, ok := errors.AsType[*control.ConflictError](err); ok {
		return true, usagef("process %d publishes into %s, but %w: give the source tree and the options of that watch, or stop it", running.PID, o.Out, conflict)
	}
	if err != nil {
		return true, err
	}
	printList(v.c, result.Findings)
	switch result.Outcome {
	case control.Published:
		fmt.Fprintln(v.c.App.Writer, ofTarget(o, result.Message))
		return true, nil
	case control.Refused:
		fmt.Fprintln(v.c.App.ErrWriter, ofTarget(o, result.Message))
		return true, &exit{status: exitRefused}
	default:
		return true, fmt.Errorf("process %d: %s", running.PID, result.Message)
	}
}

// shared returns the flags that a reconcile of watch and of render share.
func shared() []cli.Flag { return slices.Concat(sourceFlags(), publishFlags(), confirmFlags()) }

// given returns the values of those flags that were given. What stands in the settings
// file does so for the watch as well.
func given(v values) map[string][]string {
	values := make(map[string][]string)
	for _, f := range shared() {
		if name := f.Names()[0]; v.c.IsSet(name) && name != "out" { // that one is how the watch was found
			values[name] = text(v, f)
		}
	}
	return values
}

// text returns the value of a flag in a form that can be compared, wherever it was given.
func text(v values, f cli.Flag) []string {
	name := f.Names()[0]
	switch f.(type) {
	case *cli.PathFlag:
		path := value(v, name, v.c.Path)
		if name == "config" {
			path = cmp.Or(path, load.ConfigFile(v.c.Args().First()))
		}
		if abs, err := filepath.Abs(path); err == nil && path != "" {
			path = abs
		}
		return []string{path}
	case *cli.StringSliceFlag:
		return slices.Sorted(slices.Values(value(v, name, v.c.StringSlice)))
	case *cli.BoolFlag:
		return []string{strconv.FormatBool(value(v, name, v.c.Bool))}
	case *cli.IntFlag:
		return []string{strconv.Itoa(value(v, name, v.c.Int))}
	case *cli.DurationFlag:
		return []string{value(v, name, v.c.Duration).String()}
	default:
		return []string{value(v, name, v.c.String)}
	}
}

// differs says in what a watch of the source tree is not the one that a request is
// meant for. It is empty where it is.
func differs(v values, source string, r control.RetryHeld) string {
	if r.Source != "" && !sameFile(r.Source, source) {
		return fmt.Sprintf("its source tree is %s, not %s", source, r.Source)
	}
	flags := shared()
	for _, name := range slices.Sorted(maps.Keys(r.Flags)) {
		i := slices.IndexFunc(flags, func(f cli.Flag) bool { return f.Names()[0] == name })
		if i < 0 {
			return "it does not know --" + name
		}
		_, isPath := flags[i].(*cli.PathFlag)
		has, wants := text(v, flags[i]), r.Flags[name]
		if slices.Equal(has, wants) || isPath && len(wants) == 1 && sameFile(has[0], wants[0]) {
			continue
		}
		return fmt.Sprintf("its --%s is %q, not %q", name, strings.Join(has, ", "), strings.Join(wants, ", "))
	}
	return ""
}

// sameFile reports whether two paths lead to one thing.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
