package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
)

// outcome says how the verdicts of both programs on a unit agree.
type outcome string

const (
	bothAccept  outcome = "both accept"
	bothRefuse  outcome = "both refuse"
	falseAlarm  outcome = "false alarm: an error, and Envoy accepts"
	endsLater   outcome = "refused late: an error, and only an Envoy that serves refuses"
	stricter    outcome = "stricter on purpose: an error that says that Envoy accepts"
	missed      outcome = "missed refusal: no error, and Envoy refuses"
	missedCrash outcome = "missed crash: no error, and Envoy crashes"
	missedHang  outcome = "missed hang: no error, and Envoy hangs"
	ourFailure  outcome = "our failure: neither findings nor none"
	ourHang     outcome = "our hang"
)

// disagreements are the outcomes that the report lists, the worst first.
var disagreements = []outcome{ourHang, ourFailure, missedCrash, missedHang, falseAlarm, missed, endsLater, stricter}

func (v judged) outcome() outcome {
	// An error that says that Envoy accepts the configuration, as for a missing cluster, is no disagreement.
	wrong := slices.ContainsFunc(v.findings, func(d diag.Diagnostic) bool { return !strings.Contains(d.Message, "Envoy accepts this") })
	switch {
	case v.hung:
		return ourHang
	case v.failed != "":
		return ourFailure
	case v.envoy.Exit == 0 && !v.envoy.Hung && wrong && v.served != nil && v.served.refuses:
		return endsLater
	case v.envoy.Exit == 0 && !v.envoy.Hung && wrong:
		return falseAlarm
	case v.envoy.Exit == 0 && !v.envoy.Hung && len(v.findings) > 0:
		return stricter
	case v.envoy.Exit == 0 && !v.envoy.Hung:
		return bothAccept
	case wrong:
		return bothRefuse
	case v.envoy.Hung:
		return missedHang
	case v.envoy.Exit < 0:
		return missedCrash
	default:
		return missed
	}
}

// group returns the heading under which the report lists a disagreement: the rules of xdspub, or Envoy's message.
func (v judged) group() string {
	switch o := v.outcome(); o {
	case falseAlarm, endsLater, stricter:
		codes := make(map[string]bool)
		for _, d := range v.findings {
			codes[d.Code] = true
		}
		return strings.Join(slices.Sorted(maps.Keys(codes)), ", ")
	case missed, missedCrash:
		return general(v.envoy.Said)
	case ourFailure:
		return general(v.failed)
	default:
		return string(o)
	}
}

var particular = regexp.MustCompile(`'[^']*'|"[^"]*"|\b[0-9a-f]{8,}\b|\d+|/[\w./-]+`)

// general returns a message with … in place of the texts that differ between configurations.
func general(text string) string {
	const most = 160
	text = particular.ReplaceAllString(text, "…")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// report is the printed result.
type report struct {
	judged   []judged
	left     map[string]int
	examples int
}

func (r report) write(w io.Writer) {
	byOutcome := make(map[outcome][]judged)
	slowOnes, failed := 0, 0
	for _, v := range r.judged {
		if v.err != nil {
			failed++
			fmt.Fprintf(w, "could not be judged: %s: %v\n", v.name, v.err)
			continue
		}
		if v.took > slow && !v.hung {
			slowOnes++
			fmt.Fprintf(w, "slow: %s: %v\n", v.name, v.took)
		}
		byOutcome[v.outcome()] = append(byOutcome[v.outcome()], v)
	}
	for _, o := range disagreements {
		r.section(w, o, byOutcome[o])
	}
	fmt.Fprintf(w, "== %d configurations\n", len(r.judged))
	for _, o := range append([]outcome{bothAccept, bothRefuse}, disagreements...) {
		fmt.Fprintf(w, "%7d  %s\n", len(byOutcome[o]), o)
	}
	fmt.Fprintf(w, "%7d  over %v\n%7d  could not be judged\n", slowOnes, slow, failed)
	for _, reason := range slices.Sorted(maps.Keys(r.left)) {
		fmt.Fprintf(w, "%7d  left out: %s\n", r.left[reason], reason)
	}
	accepts := len(byOutcome[bothAccept]) + len(byOutcome[stricter]) + len(byOutcome[falseAlarm])
	misses := len(byOutcome[missed]) + len(byOutcome[missedCrash]) + len(byOutcome[missedHang])
	fmt.Fprintf(w, "false alarms: %s of what Envoy accepts; missed: %s of what it refuses\n",
		rate(len(byOutcome[falseAlarm]), accepts), rate(misses, misses+len(byOutcome[bothRefuse])+len(byOutcome[endsLater])))
}

func rate(n, of int) string {
	if of == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d, %.2f %%", n, of, 100*float64(n)/float64(of))
}

// section prints the groups of one outcome, the largest first.
func (r report) section(w io.Writer, o outcome, list []judged) {
	if len(list) == 0 {
		return
	}
	groups := make(map[string][]judged)
	for _, v := range list {
		groups[v.group()] = append(groups[v.group()], v)
	}
	names := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(groups[b]), len(groups[a])), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "== %s: %d\n", o, len(list))
	for _, name := range names {
		fmt.Fprintf(w, "%5d  %s\n", len(groups[name]), name)
		for _, v := range groups[name][:min(len(groups[name]), r.examples)] {
			fmt.Fprintf(w, "         %s\n", v.name)
			for _, d := range v.findings[:min(len(v.findings), 2)] {
				fmt.Fprintf(w, "           %s: %s: %s [%s]\n", d.Position, d.Path, d.Message, d.Code)
			}
			if v.envoy.Exit != 0 {
				fmt.Fprintf(w, "           Envoy, exit %d: %s\n", v.envoy.Exit, v.envoy.Said)
			}
			if v.served != nil {
				fmt.Fprintf(w, "           %s\n", v.served)
			}
		}
	}
	fmt.Fprintln(w)
}
