package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/observe/hook"
	"xdspub/store"
	"xdspub/store/waves"
	"xdspub/watch"
)

// storeOptions returns how to connect to the store at an address.
func storeOptions(v *call, address string) (o store.Options, err error) {
	if o.Address, err = store.ParseAddress(address); err != nil {
		return o, usagef("%q: %v", address, err)
	}
	o.CA, o.Cert, o.Key = v.StoreCA.Value, v.StoreCert.Value, v.StoreKey.Value
	o.User, o.Password, o.AgeKeys = v.StoreUser.Value, v.StorePassword.Value, v.EncryptSecrets.Value
	if err := o.Check(); err != nil {
		return o, usagef("%v", err)
	}
	return o, nil
}

// checkStore returns an error if the command, or one of its options, does not allow a store as source.
func checkStore(c *call, source string) error {
	if !isRowOf(c, "store-target") {
		return usagef("%s reads no store: validate, render, watch, serve and import read %s", c.Command.Name, source)
	}
	for _, r := range rowsOf(c.Command) {
		switch given := isOnLine(c, r.Name()); {
		case given && isOnlyTrees(c, r):
			return usagef("--%s is for a source tree, and %s is a store", r.Name(), source)
		case given && slices.ContainsFunc(append(settings.Upstream(), settings.AggregateBy()), func(u settings.Row) bool { return u.Name() == r.Name() }):
			return usagef("--%s is for a control plane, and %s is a store", r.Name(), source)
		case given && r.Name() == "param" && c.Command.Name == "import": // import writes all variants in a store
			return usagef("--param is for a control plane, and %s is a store", source)
		case r.Name() == "store" && c.Store.Given():
			return usagef("--store is for a source tree, and %s is a store: a machine follows a store, or writes a store", source)
		}
	}
	return nil
}

// noStore returns an error if an option is about a store, and the call names no store.
func noStore(c *call) error {
	if name := onLine(c, settings.OfFollower()); name != "" {
		return usagef("--%s is for a store as source: write etcd://HOST:PORT/PREFIX instead of %s", name, c.Args().First())
	}
	if name := onLine(c, settings.FromStore()); name != "" && !c.Store.Given() && !c.Store.InFile() {
		return usagef("--%s needs a store: write etcd://HOST:PORT/PREFIX instead of %s, or give watch --store", name, c.Args().First())
	}
	return nil
}

// machineForm matches the name of a machine.
var machineForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

// followStore sets v.remote for a source that is a store.
func followStore(v *call, source string, of check.Options, log *event.Log) (err error) {
	o := store.FollowerOptions{
		Target: v.StoreTarget.Value, Envoy: of.Envoy, Streams: of.Streams(), Version: buildVersion().program, Log: log,
	}
	if o.Options, err = storeOptions(v, source); err != nil {
		return err
	}
	if v.Command.Name == "serve" || v.Command.Name == "watch" {
		o.Acknowledge = !v.Once.Value
		var wrong string
		if o.Labels, wrong = waves.Labels(v.Label.Value); wrong != "" {
			return v.Label.Invalid(strings.Join(v.Label.Value, ","), wrong)
		}
		if o.Machine = v.Machine.Value; o.Machine == "" {
			if o.Machine, err = os.Hostname(); err != nil {
				return fmt.Errorf("the name of this machine: %w; write --machine NAME", err)
			}
		}
		if !machineForm.MatchString(o.Machine) {
			return v.Machine.Invalid(o.Machine, "write letters, digits, _, . and -")
		}
	}
	v.remote = store.NewFollower(o)
	return nil
}

// newWriter returns the writer of the store of --store; nil for none.
func newWriter(v *call, log *event.Log) (*store.Writer, error) {
	if v.Command.Name != "watch" {
		return nil, nil
	}
	if v.Store.Value == "" {
		if v.RolloutCheck.Given() {
			return nil, usagef("--check needs --store: it judges a rollout in the fleet of a store")
		}
		return nil, nil
	}
	if v.Once.Value {
		return nil, usagef("--store and --once exclude each other: the writer of a store is a running watch")
	}
	o, err := storeOptions(v, v.Store.Value)
	if err != nil {
		return nil, err
	}
	of := store.WriterOptions{Options: o, By: operatorOf(), Log: log}
	for _, text := range v.RolloutCheck.Value {
		c, err := hook.ParseCheck(text, hook.Options{CA: v.WebhookCA.Value, Version: buildVersion().program})
		if err != nil {
			if strings.Contains(text, "://") {
				text = hook.Shown(text)
			}
			return nil, v.RolloutCheck.Invalid(text, err.Error())
		}
		of.Checks = append(of.Checks, c)
	}
	return store.NewWriter(of), nil
}

// configureRollouts sets the waves of the writer of the store.
func configureRollouts(v *call) error {
	if v.writer == nil {
		return nil
	}
	for _, w := range v.Rollout.Value {
		for _, name := range w.Targets {
			if !slices.ContainsFunc(v.Targets.Value, func(t settings.Target) bool { return t.Name == name }) {
				return usagef("rollout has a wave of the target %q, and the setting targets has no such target: correct the name", diag.ClipLine(name, 60))
			}
		}
	}
	v.writer.Configure(v.Rollout.Value)
	return nil
}

// storeOf returns the writer of --store as the Store of a watch; nil for none.
func storeOf(v *call) watch.Store {
	if v.writer == nil {
		return nil
	}
	return v.writer
}

// writeStore runs a watch, and publishes in the store of --store while the watch runs.
func writeStore(ctx context.Context, v *call, run func(context.Context) error) error {
	if v.writer == nil {
		return run(ctx)
	}
	return v.writer.RunWhile(ctx, run)
}

// storePatience is how long status asks a store.
const storePatience = time.Minute

// storeStatus prints the status of the fleet of --store.
func storeStatus(c *call) error {
	o, err := storeOptions(c, c.Store.Value)
	if err != nil {
		return err
	}
	report, err := askStore(c, o)
	if err != nil {
		return err
	}
	return printReport(c, report, report.InSync, writeFleet)
}

// askStore asks a store for the target of --store-target.
func askStore(c *call, o store.Options) (store.Report, error) {
	ctx, stop := interruptible(c)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	report, err := store.Ask(ctx, o, c.StoreTarget.Value)
	if err != nil {
		err = fmt.Errorf("ask %s: %w", o.Address, err)
	}
	return report, err
}

// writeFleet prints a Report as text, the verdict first.
func writeFleet(w io.Writer, r store.Report, now time.Time) error {
	p := &statusPrinter{now: now}
	machines, counts := 0, make(map[store.Standing]int)
	for _, t := range r.Targets {
		machines += len(t.Machines)
		for _, m := range t.Machines {
			counts[m.Standing]++
		}
	}
	verdict := "in sync"
	if !r.InSync {
		verdict = "not in sync"
	}
	p.printf("%s: %s", verdict, diag.Count(machines, "machine"))
	if slices.ContainsFunc(r.Targets, func(t store.Target) bool { return t.Writer == "" }) {
		p.printf(", no writer")
	}
	if slices.ContainsFunc(r.Targets, func(t store.Target) bool { return t.Error != "" }) {
		p.printf(", a damaged head")
	}
	for _, s := range []store.Standing{store.Broken, store.Behind, store.Silent} {
		if n := counts[s]; n > 0 {
			p.printf(", %d %s", n, s)
		}
	}
	p.printf("\n")
	for _, t := range r.Targets {
		writeTarget(p, t)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// mostMachines is the number of machines of a target that the text lists for each standing.
const mostMachines = 20

// writeTarget prints a target, and its machines that are not in sync.
func writeTarget(p *statusPrinter, t store.Target) {
	if t.Target != "" {
		p.printf("target %s:\n", t.Target)
	}
	if t.Error != "" {
		p.printf("  head: %s\n", t.Error)
	} else {
		encrypted := ""
		if t.Head.Step.Cipher != "" {
			encrypted = ", encrypted"
		}
		p.printf("  head: snapshot %s, %s%s, published at %s by %s\n",
			t.Head.Snapshot, diag.Count(t.Head.Resources, "resource"), encrypted, p.at(t.Head.Time), t.Head.Writer)
	}
	if t.Writer == "" {
		p.printf("  writer: none; xdspub watch --store publishes changes\n")
	} else {
		p.printf("  writer: %s\n", t.Writer)
	}
	if t.Rollout != nil || t.Paused != nil {
		p.printf("  ")
		p.rollout(rolloutReport{t.Target, t.Rollout, t.Wave, t.Paused, t.Writer})
	}
	shown := make(map[store.Standing]int)
	for _, m := range t.Machines {
		if shown[m.Standing]++; m.Standing == store.InSync || shown[m.Standing] > mostMachines {
			continue
		}
		p.printf("  %s: %s", m.Name, m.Standing)
		switch {
		case m.Standing == store.Silent:
			p.printf(" for %s, with snapshot %s", time.Duration(m.Silent)*time.Second, m.Snapshot)
		case m.Message != "":
			p.printf(": %s", m.Message)
		case m.Snapshot != "":
			p.printf(", with snapshot %s", m.Snapshot)
		}
		p.printf("\n")
	}
	for _, s := range []store.Standing{store.Broken, store.Behind, store.Silent} {
		if more := shown[s] - mostMachines; more > 0 {
			p.printf("  and %d more %s; --format json lists all\n", more, s)
		}
	}
}
