package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/diag"
)

// scenario is an action on an output directory. The tests make each of its system calls fail, and kill the
// process at each. Published files say what they need, so that the tests can check the invariants: the first
// line is the version, "+ c" defines the cluster c, "> f" names the file f, and "@ c" names the cluster c.
type scenario struct {
	name string
	// before makes the directory that the action finds.
	before []func(out string) error
	// plan is the plan to publish. If confirmed is true, an Envoy confirms the steps, refuses the version
	// refuse of a file, and has then taken keep.
	plan      Plan
	confirmed bool
	refuse    string
	keep      []string
	// run is the action; nil means to publish plan. run can be repeated.
	run func(d *Dir, e *envoy) error
	// from are the plans whose files the rollback restores; nil means the files that were published before.
	from []Plan

	// want are the plans whose files are published in the end, except the files gone. The files stays are then
	// as plan has them.
	want     []Plan
	gone     []string
	stays    []string
	may      []string // files that may stay, because an earlier writer was killed
	snapshot string   // the recorded snapshot in the end
	held     string   // the held snapshot in the end
	last     string   // the message of the last refusal
	drifted  []string // the drifted files in the end
}

// options returns the options of the directory. In about half of the scenarios the record has a base.
func (s scenario) options() Options { return Options{maxChanged: len(s.name) % 2} }

func text(path, version string, lines ...string) File {
	return File{Path: path, Data: []byte(strings.Join(append([]string{version}, lines...), "\n")), Version: version, Secret: strings.HasPrefix(path, "sds/")}
}

func step(name string, files ...File) Step { return Step{Name: name, Write: files} }

func snapshot(id string, steps ...Step) Plan {
	return Plan{Steps: steps, Manifest: Manifest{Format: "json", EDSMode: "file", Snapshot: id, Published: day1}}
}

// state1 returns the plan that is published before most scenarios.
func state1() Plan {
	return snapshot("s1",
		step("new", text("sds/cert/sds.json", "cert 1"), text("eds/web/eds.json", "web 1"), text("eds/old/eds.json", "old 1"), text("rds/main/rds.json", "main 1", "@ web", "@ old")),
		step("clusters", text("cds/cds.json", "cds 1", "+ web", "> eds/web/eds.json", "+ old", "> eds/old/eds.json")),
		step("listeners", text("lds/lds.json", "lds 1", "> rds/main/rds.json", "> sds/cert/sds.json")),
	)
}

// state2 returns the change of most scenarios: the cluster api comes, the cluster old goes, and the secret
// changes.
func state2() Plan {
	p := snapshot("s2",
		step("new", text("eds/api/eds.json", "api 2")),
		step("secrets", text("sds/cert/sds.json", "cert 2")),
		step("clusters", text("cds/cds.json", "cds 2", "+ web", "> eds/web/eds.json", "+ api", "> eds/api/eds.json", "+ old", "> eds/old/eds.json")),
		step("listeners", withKey(text("lds/lds.json", "lds 2", "> rds/main/rds.json", "> sds/cert/sds.json"))),
		step("routes", text("rds/main/rds.json", "main 2", "@ web", "@ api")),
	)
	p.Manifest.Published = day2
	p.Manifest.Retired = []Retired{{Cluster: "old", Since: day2}, {File: "eds/old/eds.json", Since: day2}}
	return keeping(p, "+ web", "> eds/web/eds.json", "+ old", "> eds/old/eds.json", "+ api", "> eds/api/eds.json")
}

// keeping returns p with a rollback that keeps new clusters. clusters are the lines of all clusters after the
// rollback.
func keeping(p Plan, clusters ...string) Plan {
	kept := text("cds/cds.json", "kept by "+p.Manifest.Snapshot, clusters...)
	p.Rollback = &Rollback{Taken: RestoredFile{File: kept, Retired: []Retired{{Cluster: strings.TrimPrefix(clusters[len(clusters)-2], "+ ")}}}}
	return p
}

// kept returns the plan of the rollback of p, if Envoy has taken the clusters of p.
func kept(p Plan) Plan { return Plan{Steps: []Step{step("kept", p.Rollback.Taken.File)}} }

func withKey(f File) File {
	f.Secret = true
	return f
}

// trim2 trims what state2 has retired.
func trim2() Plan {
	p := snapshot("s2", Step{
		Name:   "trim",
		Write:  []File{text("cds/cds.json", "cds 2 trimmed", "+ web", "> eds/web/eds.json", "+ api", "> eds/api/eds.json")},
		Remove: []string{"eds/old/eds.json"},
	})
	p.Manifest.Published = day2
	return p
}

// state3 returns a change that fits state1 and each step of state2: api is retired, and the new route needs a
// cluster of its own.
func state3() Plan {
	p := snapshot("s3",
		step("new", text("eds/new/eds.json", "new 3")),
		step("clusters", text("cds/cds.json", "cds 3", "+ web", "> eds/web/eds.json", "+ new", "> eds/new/eds.json", "+ old", "> eds/old/eds.json", "+ api", "> eds/api/eds.json")),
		step("listeners", text("lds/lds.json", "lds 3", "> rds/main/rds.json", "> sds/cert/sds.json")),
		step("routes", text("rds/main/rds.json", "main 3", "@ web", "@ new")),
	)
	p.Manifest.Published = day2
	return keeping(p, "+ web", "> eds/web/eds.json", "+ old", "> eds/old/eds.json", "+ api", "> eds/api/eds.json", "+ new", "> eds/new/eds.json")
}

// state5 returns state3 with other versions.
func state5() Plan {
	p := state3()
	p.Manifest.Snapshot = "s5"
	for i, s := range p.Steps {
		p.Steps[i] = step(s.Name, text(s.Write[0].Path, s.Name+" 5", strings.Split(string(s.Write[0].Data), "\n")[1:]...))
	}
	return p
}

// state4 returns a change after an interrupted trim, in which old is gone.
func state4() Plan {
	p := snapshot("s4",
		step("new", text("eds/new/eds.json", "new 4")),
		step("clusters", text("cds/cds.json", "cds 4", "+ web", "> eds/web/eds.json", "+ api", "> eds/api/eds.json", "+ new", "> eds/new/eds.json")),
		step("routes", text("rds/main/rds.json", "main 4", "@ web", "@ new")),
	)
	return keeping(p, "+ web", "> eds/web/eds.json", "+ api", "> eds/api/eds.json", "+ old", "> eds/old/eds.json", "+ new", "> eds/new/eds.json")
}

// listeners returns a plan that writes one file three times, as if a listener waited for an address.
func listeners() Plan {
	const route, cert = "> rds/main/rds.json", "> sds/cert/sds.json"
	return snapshot("s2",
		step("leave", text("lds/lds.json", "lds 2 some", route, cert)),
		step("more", text("lds/lds.json", "lds 2 more", route, cert)),
		step("all", text("lds/lds.json", "lds 2 all", route, cert)),
		step("routes", text("rds/main/rds.json", "main 2", "@ web")),
	)
}

// toAndFro returns the plan to the n-th of several states. The file exists in every other state. While the file
// exists, a listener names it, or a cluster if it holds endpoints.
func toAndFro(file string, n int) Plan {
	var (
		clusters  = []string{"+ web", "+ blue"}
		listeners = []string{"> rds/main/rds.json"}
		as        = func(path string, lines ...string) File { return text(path, fmt.Sprint(path, " ", n), lines...) }
		p         = snapshot(fmt.Sprint("s", n))
	)
	if n%2 == 1 {
		of := as(file)
		switch kind, _, _ := strings.Cut(file, "/"); kind {
		case "eds":
			clusters = append(clusters, "> "+file)
		case "rds", "srds":
			of = as(file, "@ web", "@ blue")
			fallthrough
		default:
			listeners = append(listeners, "> "+file)
		}
		p.Steps = append(p.Steps, step("new", of))
	} else {
		p.Manifest.Retired = []Retired{{File: file, Since: day1}}
	}
	p.Steps = append(p.Steps,
		step("clusters", as("cds/cds.json", clusters...)),
		step("listeners", as("lds/lds.json", listeners...)),
		step("routes", as("rds/main/rds.json", "@ web", "@ blue")),
	)
	if n == 1 { // the first state is published in one step
		var all Step
		for _, s := range p.Steps {
			all.Write = append(all.Write, s.Write...)
		}
		p.Steps = []Step{all}
	}
	return p
}

// wentAndCame makes a directory in which a file went, was recorded as retired, and came back. The writer was
// killed before the last step of the return.
func wentAndCame(file string) []func(string) error {
	went := toAndFro(file, 2)
	return []func(string) error{
		done(toAndFro(file, 1)), done(went), done(Plan{Manifest: went.Manifest}),
		killed(toAndFro(file, 3), &envoy{}, 1, "rename", " rds/main/rds.json"),
	}
}

// done publishes p.
func done(p Plan) func(out string) error {
	return func(out string) error {
		return within(out, nil, func(d *Dir) error {
			_, err := d.Publish(context.Background(), p)
			return err
		})
	}
}

// killed publishes p, and stops at the n-th call that begins with begins and ends with ends. From that call on,
// no call has an effect.
func killed(p Plan, e *envoy, n int, begins, ends string) func(out string) error {
	return func(out string) error {
		errDead, dead, left := errors.New("dead"), false, n
		err := within(out, func(_ int, call string) error {
			if strings.HasPrefix(call, begins) && strings.HasSuffix(call, ends) {
				left--
			}
			if dead = dead || left == 0; dead {
				return errDead
			}
			return nil
		}, func(d *Dir) error {
			p := p // scenarios that run side by side share this function
			if e != nil {
				c := *e
				c.out = out
				p.Confirm = &c
			}
			_, err := d.Publish(context.Background(), p)
			return err
		})
		if !errors.Is(err, errDead) {
			return fmt.Errorf("not killed at %s %s: %w", begins, ends, err)
		}
		return nil
	}
}

func edited(name, data string) func(out string) error {
	return func(out string) error { return os.WriteFile(filepath.Join(out, name), []byte(data), 0o644) }
}

func removed(name string) func(out string) error {
	return func(out string) error { return os.Remove(filepath.Join(out, name)) }
}

func within(out string, fault func(int, string) error, do func(d *Dir) error) error {
	d, err := open(out, Options{maxChanged: 1}, &probe{root: out, quick: true, fault: fault})
	if err != nil {
		return err
	}
	return errors.Join(do(d), d.Close())
}

// publish is the action of a scenario without run.
func (s scenario) publish(d *Dir, e *envoy) error {
	p := s.plan
	if s.confirmed {
		p.Confirm = e
	}
	_, err := d.Publish(context.Background(), p)
	return err
}

// do executes the action of the scenario.
func (s scenario) do(d *Dir, e *envoy) error {
	if s.run != nil {
		return s.run(d, e)
	}
	return s.publish(d, e)
}

// envoy is a Confirmer whose Envoy accepts all versions except refuse.
type envoy struct {
	out      string
	snapshot string
	refuse   string
	keep     []string
	// took are the versions that the Envoy has answered for, by path.
	took    map[string]string
	refused bool
}

func (s scenario) envoy(out string) *envoy {
	return &envoy{out: out, snapshot: s.plan.Manifest.Snapshot, refuse: s.refuse, keep: s.keep, took: make(map[string]string)}
}

const noReason = "no reason"

func (e *envoy) Before(context.Context, Step) error { return nil }

func (e *envoy) After(_ context.Context, s Step) (bool, error) {
	for _, f := range s.Write {
		data, err := os.ReadFile(filepath.Join(e.out, f.Path))
		if err != nil || string(data) != string(f.Data) {
			return false, fmt.Errorf("%s is %q, %w: it was to be confirmed as %s", f.Path, data, err, f.Version)
		}
		if e.took != nil {
			e.took[f.Path] = f.Version
		}
		if f.Version == e.refuse {
			e.refused = true
			return true, &RefusedError{
				Refusal: Refusal{Snapshot: e.snapshot, Time: day2, Step: s.Name, Findings: diag.List{{Severity: diag.Error, Message: noReason}}},
				Keep:    e.keep,
			}
		}
	}
	return true, nil
}

func scenarios() []scenario {
	var (
		one  = []Plan{state1()}
		two  = []Plan{state1(), state2()}
		list []scenario
	)
	add := func(s scenario) {
		s.confirmed = s.confirmed || s.refuse != ""
		list = append(list, s)
	}
	out1 := []func(string) error{done(state1())}
	out2 := append(slices.Clone(out1), done(state2()))

	add(scenario{name: "forward", before: out1, plan: state2(), want: two, snapshot: "s2"})
	add(scenario{name: "forward, confirmed", before: out1, plan: state2(), confirmed: true, want: two, snapshot: "s2"})
	// New clusters stay until their trim if Envoy took their step. New files stay too, except the files of the
	// refused step.
	backTo1 := []Plan{state1(), kept(state2())}
	for _, s := range state2().Steps {
		refused := scenario{
			name: "refused: " + s.Name, before: out1, plan: state2(), refuse: s.Write[0].Version,
			want: one, stays: []string{"eds/api/eds.json"}, snapshot: "s1", held: "s2", last: noReason,
		}
		switch s.Name {
		case "new":
			refused.stays, refused.may = nil, refused.stays
		case "listeners", "routes":
			refused.want = backTo1
		}
		add(refused)
	}
	add(scenario{
		name: "refused: routes, secrets stay", before: out1, plan: state2(), refuse: "main 2", keep: []string{"sds/cert/sds.json", "eds/api/eds.json"},
		want: backTo1, stays: []string{"sds/cert/sds.json", "eds/api/eds.json"}, snapshot: "s1", held: "s2", last: noReason,
	})
	add(scenario{name: "listeners thrice", before: out1, plan: listeners(), confirmed: true, want: []Plan{state1(), listeners()}, snapshot: "s2"})
	add(scenario{
		name: "listeners thrice, refused: more", before: out1, plan: listeners(), refuse: "lds 2 more",
		want: one, snapshot: "s1", held: "s2", last: noReason,
	})
	add(scenario{
		name: "listeners thrice, refused: routes", before: out1, plan: listeners(), refuse: "main 2",
		want: one, snapshot: "s1", held: "s2", last: noReason,
	})
	add(scenario{name: "first publish", plan: state1(), confirmed: true, want: one, snapshot: "s1"})
	add(scenario{name: "first publish, refused", plan: state1(), refuse: "cds 1", want: one, snapshot: "s1", last: noReason})
	add(scenario{name: "trim", before: out2, plan: trim2(), confirmed: true, want: append(slices.Clone(two), trim2()), snapshot: "s2"})
	add(scenario{name: "trim, refused", before: out2, plan: trim2(), refuse: "cds 2 trimmed", want: two, snapshot: "s2", last: noReason})

	half := append(slices.Clone(out1), killed(state2(), &envoy{}, 1, "rename", " lds/lds.json"))
	add(scenario{
		name: "over an interrupted change", before: half, plan: state3(), confirmed: true,
		want: []Plan{state1(), state3()}, stays: []string{"eds/api/eds.json", "sds/cert/sds.json"}, snapshot: "s3",
	})
	add(scenario{
		name: "over an interrupted change, refused: listeners", before: half, plan: state3(), refuse: "lds 3",
		want: []Plan{state1(), kept(state3())}, stays: []string{"eds/api/eds.json", "eds/new/eds.json"}, snapshot: "s1", held: "s3", last: noReason,
	})
	add(scenario{
		name: "over two interrupted changes, refused: listeners", before: append(slices.Clone(half), killed(state3(), &envoy{}, 1, "rename", " lds/lds.json")),
		plan: state5(), refuse: "listeners 5",
		want: []Plan{state1(), kept(state5())}, stays: []string{"eds/api/eds.json", "eds/new/eds.json"}, snapshot: "s1", held: "s5", last: noReason,
	})
	add(scenario{
		name: "back over an interrupted change", before: half, plan: state1(), confirmed: true,
		want: one, stays: []string{"eds/api/eds.json"}, snapshot: "s1",
	})
	add(scenario{
		name: "over an interrupted trim, refused: routes", before: append(slices.Clone(out2), killed(trim2(), &envoy{}, 1, "open", "eds/old")),
		plan: state4(), refuse: "main 4", want: append(slices.Clone(two), kept(state4())), stays: []string{"eds/new/eds.json"}, snapshot: "s2", held: "s4", last: noReason,
	})
	add(scenario{
		name:   "over a change that nobody confirmed, refused: routes",
		before: append(slices.Clone(out1), killed(state2(), nil, 1, "rename", " lds/lds.json")),
		plan:   state3(), refuse: "main 3",
		want: []Plan{state1(), {Steps: state2().Steps[:3]}, kept(state3())}, stays: []string{"eds/new/eds.json"}, snapshot: "s1", held: "s3", last: noReason,
		drifted: []string{"sds/cert/sds.json"},
	})
	add(scenario{
		name:   "over the end of a change, refused: listeners",
		before: append(slices.Clone(out1), killed(state2(), &envoy{}, 1, "remove", ".xdspub/intent")),
		plan:   state3(), refuse: "lds 3", want: append(slices.Clone(two), kept(state3())), stays: []string{"eds/new/eds.json"}, snapshot: "s2", held: "s3", last: noReason,
	})
	for _, file := range []string{"eds/blue/eds.json", "rds/side/rds.json", "sds/cert/sds.json", "ecds/lua/ecds.json", "srds/scopes/srds.json"} {
		kind, _, _ := strings.Cut(file, "/")
		add(scenario{
			name: kind + " goes, is back by half, and goes again", before: wentAndCame(file), plan: toAndFro(file, 4), confirmed: true,
			want: []Plan{toAndFro(file, 1), toAndFro(file, 4)}, stays: []string{file}, snapshot: "s4",
		})
	}
	for _, file := range []string{"eds/blue/eds.json", "srds/scopes/srds.json"} {
		kind, _, _ := strings.Cut(file, "/")
		add(scenario{
			name: kind + " goes, is back by half, and goes again, refused: listeners", before: wentAndCame(file), plan: toAndFro(file, 4), refuse: "lds/lds.json 4",
			want: []Plan{toAndFro(file, 1), toAndFro(file, 2)}, snapshot: "s2", held: "s4", last: noReason,
		})
	}
	hand := "cds by hand\n+ web\n> eds/web/eds.json\n+ old\n> eds/old/eds.json\n"
	add(scenario{
		name: "over an edited file, refused: listeners", before: append(slices.Clone(out1), edited("cds/cds.json", hand)),
		plan: state2(), refuse: "lds 2", want: one, stays: []string{"cds/cds.json", "sds/cert/sds.json", "eds/api/eds.json"}, snapshot: "s1", held: "s2", last: noReason,
	})
	add(scenario{
		name: "over a removed file, refused: routes", before: append(slices.Clone(out1), removed("rds/main/rds.json")),
		plan: state2(), refuse: "main 2", want: two, snapshot: "s1", held: "s2", last: noReason,
	})
	add(scenario{
		name: "under a removed file, refused: listeners", before: append(slices.Clone(out1), removed("rds/main/rds.json")),
		plan: state2(), refuse: "lds 2", want: backTo1, gone: []string{"rds/main/rds.json"}, stays: []string{"eds/api/eds.json"}, snapshot: "s1", held: "s2", last: noReason,
		drifted: []string{"rds/main/rds.json"},
	})
	add(scenario{
		name: "without the record, refused: listeners", before: append(slices.Clone(out1), removed(manifestPath)),
		plan: state2(), refuse: "lds 2", want: two, snapshot: "s2", last: noReason,
	})
	add(scenario{
		name:   "recovery",
		before: append(slices.Clone(out1), killed(state2(), &envoy{snapshot: "s2", refuse: "main 2"}, 2, "rename", " cds/cds.json")),
		plan:   state2(), refuse: "main 2", from: one,
		run: func(d *Dir, e *envoy) error {
			_, err := d.Recover(context.Background(), Plan{Confirm: e})
			return err
		},
		want: backTo1, stays: []string{"eds/api/eds.json"}, snapshot: "s1", held: "s2", last: noReason,
	})
	add(scenario{
		name: "release",
		before: append(slices.Clone(out1), func(out string) error {
			s := scenario{plan: state2(), confirmed: true, refuse: "lds 2"}
			err := within(out, nil, func(d *Dir) error { return s.publish(d, s.envoy(out)) })
			if _, ok := errors.AsType[*RefusedError](err); !ok {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		}),
		plan: state1(),
		run:  func(d *Dir, _ *envoy) error { return d.Release() },
		want: one, stays: []string{"cds/cds.json", "eds/api/eds.json"}, snapshot: "s1", last: noReason,
	})
	add(scenario{
		name: "commit", before: slices.Clone(out1), plan: state1(),
		run:  func(d *Dir, _ *envoy) error { return d.SetRevision("s1", "c0ffee") },
		want: one, snapshot: "s1",
	})
	return list
}
