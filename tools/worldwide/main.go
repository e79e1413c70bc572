// Command worldwide judges the configurations of other people. It gives each bootstrap and resource below a
// directory, in any format, to `xdspub validate` and to `envoy --mode validate`, and prints the disagreements. If
// xdspub refuses a configuration that envoy --mode validate accepts, a serving Envoy judges the configuration, too.
//
//	make worldwide DIR=path/to/configurations
//
// gather.go finds configurations in files. wrap.go makes bootstraps of resources. Each configuration is judged in
// its own scratch directory, with copies of the files that it names by relative paths. Nothing writes into DIR.
// Envoy runs the Lua code of configurations. A serving Envoy is kept apart from the machine (apart_linux.go).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == apartCommand {
		fail(enter(os.Args[2], os.Args[3:])) // enter returns only an error
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "worldwide:", err)
	os.Exit(1)
}

func run(ctx context.Context) error {
	j := judge{serve: serve}
	flag.StringVar(&j.xdspub, "xdspub", "", "the `program` to judge with")
	flag.StringVar(&j.envoy, "envoy", "", "the real Envoy, a `program`")
	workers := flag.Int("jobs", 2, "judge so `many` configurations at a time")
	part := flag.String("part", "all", "judge `all`, or hold some back while rules are mended: seen are two thirds, unseen the rest")
	verdicts := flag.String("verdicts", "", "keep what Envoy says in a `file`, and do not ask again what is in it")
	examples := flag.Int("examples", 5, "name so `many` configurations of each group")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("one directory is wanted, got %d", flag.NArg())
	}
	chosen, err := parts(*part)
	if err != nil {
		return err
	}
	for _, program := range []*string{&j.xdspub, &j.envoy} { // each run has another working directory
		if *program, err = filepath.Abs(*program); err != nil {
			return err
		}
	}
	if j.known, err = openVerdicts(*verdicts); err != nil {
		return err
	}
	defer j.known.close()
	found, err := gather(flag.Arg(0))
	if err != nil {
		return err
	}
	list := judgeAll(ctx, &j, chosen(found.units), *workers)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report{list, found.left, *examples}.write(os.Stdout)
	return nil
}

// parts returns the function that chooses the units of a part. The hash of a configuration decides, so that copies
// of a configuration are in the same part.
func parts(name string) (func([]unit) []unit, error) {
	unseen := func(u unit) bool { return u.sum()[0]%3 == 0 }
	switch name {
	case "all":
		return func(all []unit) []unit { return all }, nil
	case "seen", "unseen":
		return func(all []unit) (some []unit) {
			for _, u := range all {
				if unseen(u) == (name == "unseen") {
					some = append(some, u)
				}
			}
			return some
		}, nil
	}
	return nil, fmt.Errorf("-part %q is none of all, seen, unseen", name)
}

// judgeAll judges units by several workers. The result has the order of units.
func judgeAll(ctx context.Context, j *judge, units []unit, workers int) []judged {
	list := make([]judged, len(units))
	work := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range work {
				list[i] = j.judge(ctx, units[i])
			}
		})
	}
	for i := range units {
		if ctx.Err() != nil {
			break
		}
		work <- i
	}
	close(work)
	group.Wait()
	return list
}
