package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"xdspub/cmd/settings"
	"xdspub/watch"
	"xdspub/watch/control"
)

// handOver asks the watch that publishes into the output directory to retry held snapshots, and prints the
// result. done is false if no watch answers; err then says why.
func handOver(v *call, o watch.Options) (done bool, err error) {
	running, err := control.Ask(v.Context, o.Out)
	if err != nil {
		return false, err
	}
	source, err := o.Source.Source()
	if err != nil {
		return true, err
	}
	fmt.Fprintf(v.App.ErrWriter, "asking process %d, which watches %s, to retry held snapshots\n", running.PID, running.Source)
	result, err := control.Retry(v.Context, o.Out, control.RetryHeld{Source: source, Flags: given(v)})
	if conflict, ok := errors.AsType[*control.ConflictError](err); ok {
		return true, usagef("process %d publishes into %s, but %w: give the source tree and the options of that "+
			"watch, or stop it", running.PID, o.Out, conflict)
	}
	if err != nil {
		return true, err
	}
	printList(v, result.Findings)
	switch result.Outcome {
	case control.Published:
		fmt.Fprintln(v.App.Writer, ofTarget(o, result.Message))
		return true, nil
	case control.Refused, control.Waiting:
		fmt.Fprintln(v.App.ErrWriter, ofTarget(o, result.Message))
		return true, &exit{status: exitRefused}
	default:
		return true, fmt.Errorf("process %d: %s", running.PID, result.Message)
	}
}

// shared returns the rows that watch and render share and that affect a reconcile. shared omits --out, by which
// render finds the watch.
func shared() []settings.Row {
	return slices.Concat(settings.Source(), settings.Publish()[1:], settings.Confirm())
}

// withFileName returns the settings with the path of the settings file in Config, even if --config is not
// given.
func withFileName(v *call) *settings.Settings {
	of := *v.Settings
	of.Config.Value = settingsFile(v, v.Args().First())
	return &of
}

// given returns the values of all options and variables that the user has set. The watch itself reads the
// settings file.
func given(v *call) map[string][]string {
	values := make(map[string][]string)
	for _, r := range shared() {
		if r.Origin(v.Settings).Given() {
			values[r.Name()] = r.Texts(withFileName(v))
		}
	}
	return values
}

// differs returns how a watch of the source tree with the settings v differs from the watch that a request
// describes; empty if they match.
func differs(v *call, source string, r control.RetryHeld) string {
	if r.Source != "" && !sameFile(r.Source, source) {
		return fmt.Sprintf("its source tree is %s, not %s", source, r.Source)
	}
	rows, of := shared(), withFileName(v)
	for _, name := range slices.Sorted(maps.Keys(r.Flags)) {
		i := slices.IndexFunc(rows, func(r settings.Row) bool { return r.Name() == name })
		if i < 0 {
			return "it does not know --" + name
		}
		has, wants := rows[i].Texts(of), r.Flags[name]
		if slices.Equal(has, wants) || rows[i].IsPath() && len(wants) == 1 && sameFile(has[0], wants[0]) {
			continue
		}
		return fmt.Sprintf("its --%s is %q, not %q", name, strings.Join(has, ", "), strings.Join(wants, ", "))
	}
	return ""
}

// sameFile reports whether two paths lead to the same file or directory.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
