package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/source/owners"
	"xdspub/watch/control"
	"xdspub/watch/status"
)

// mostOfAKind is the largest number of things of one kind that the text lists, such as files that an Envoy has
// rejected. The text counts further things.
const mostOfAKind = 10

// writeStatus prints a Status as text, the verdict first.
func writeStatus(w io.Writer, r *status.Status, now time.Time) error {
	p := &statusPrinter{now: now}
	p.printf("%s\n", r.Verdict())
	p.published(r)
	writeDecisions(&p.b, r.Out, control.Decisions{Paused: r.Paused, Pinned: r.Pinned, Trial: r.Trial})
	if r.Frozen != nil {
		p.printf("frozen: changes wait %s\n", r.Frozen)
	}
	writeApproval(&p.b, r.Out, r.Guarded, r.Approved)
	p.watch(r)
	p.source(r)
	p.certificates(r.Certificates)
	p.change(r)
	if r.Incomplete {
		p.printf("record: the list of published files was removed or damaged, and xdspub does not know which files were changed by hand; %s\n", publishAgain(r))
	}
	if len(r.Drifted) > 0 {
		p.printf("changed by hand: %s; %s\n", diag.Few(r.Drifted, mostOfAKind), publishAgain(r))
	}
	if len(r.Missing) > 0 {
		p.printf("missing: %s; an Envoy that starts now rejects the resources that refer to them; %s\n", diag.Few(r.Missing, mostOfAKind), publishAgain(r))
	}
	for _, h := range r.Held {
		p.refusal("held", h)
	}
	envoys := slices.Clone(r.Envoys)
	slices.SortStableFunc(envoys, func(a, b status.EnvoyReport) int { return cmp.Compare(badness(a), badness(b)) })
	for _, e := range envoys {
		p.envoy(e)
	}
	p.clients(r.Clients)
	p.retired(r.Retired)
	if last := r.LastRefusal; last != nil && !slices.ContainsFunc(r.Held,
		func(h publish.Refusal) bool { return h.Snapshot == last.Snapshot && h.Time.Equal(last.Time) }) {
		p.refusal("last rejection", *last)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// publishAgain returns how missing or changed files are published again.
func publishAgain(r *status.Status) string {
	switch {
	case r.Paused != nil:
		return "publishing is paused, so nothing publishes the files again"
	case r.Watch != nil:
		return "the next pass of the watch publishes the files again"
	}
	return fmt.Sprintf("publish the files again with xdspub render --out %s SRC", r.PublishedTo())
}

// badness ranks an Envoy. The worst has the lowest number.
func badness(e status.EnvoyReport) int {
	if e.Error != "" {
		return 0
	}
	for i, s := range status.Syncs {
		if s != status.NotSent && e.Count(s) > 0 {
			return 1 + i
		}
	}
	return 1 + len(status.Syncs)
}

type statusPrinter struct {
	b   strings.Builder
	now time.Time
}

func (p *statusPrinter) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func (p *statusPrinter) published(r *status.Status) {
	s := r.Published
	if s == nil {
		return
	}
	p.printf("published: snapshot %s at %s%s", s.Snapshot, p.at(s.Time), revisionOf(s.Revision))
	if s.Part != nil {
		p.printf(", a part of a source tree whose rest waits since %s", p.at(s.Part.Since))
		if len(s.Part.Held) > 0 {
			p.printf("; %s", owners.Text(s.Part.Held))
		}
	}
	var counts []string
	for _, api := range slices.Sorted(maps.Keys(s.Resources)) {
		counts = append(counts, fmt.Sprintf("%s %d", api, s.Resources[api]))
	}
	p.printf("\n  resources: %s\n", cmp.Or(strings.Join(counts, ", "), "none"))
}

// at returns a time as text, with how long ago that was.
func (p *statusPrinter) at(t time.Time) string {
	text := t.UTC().Format(time.RFC3339)
	if ago := p.now.Sub(t).Truncate(time.Second); ago > 0 {
		text += fmt.Sprintf(" (%s ago)", ago)
	}
	return text
}

// watch prints whether a watch is running, with its answer.
func (p *statusPrinter) watch(r *status.Status) {
	w := r.Watch
	switch {
	case r.WatchError != "":
		p.printf("watch: %s; no change of the source tree is published until a watch or render runs\n", r.WatchError)
		return
	case w == nil:
		p.printf("watch: none is running (no control socket)\n")
		return
	}
	p.printf("watch: process %d publishes %s%s", w.PID, w.Source, revisionOf(w.Revision))
	if w.Last != nil {
		p.printf(", last pass at %s (%s): %s", p.at(w.Last.Ended), w.Last.Reason, w.Last.Outcome)
	}
	p.printf("\n")
	if w.Waits != nil {
		p.printf("  snapshot %s of the source tree waits since %s%s\n", w.Waits.Snapshot, p.at(w.Waits.Since), w.Waits.GoesOn())
	}
	if share := w.Share(); share != "" {
		p.printf("  rollout: %s\n", share)
	}
	if w.Store != nil {
		p.printf("  store %s\n", w.Store)
	}
	if w.Failed != "" {
		p.printf("  can't publish: %s\n", w.Failed)
	}
	if r.Replaced() {
		p.printf("  has published snapshot %s: somebody has put other files in its place; the next rescan publishes the snapshot again\n", w.Snapshot)
	}
	// writeStatus prints refusals by Envoy from the record. If status checks a source tree, source prints the
	// findings of the tree.
	if w.Refused != nil && w.Refused.Part != nil {
		p.part(w.Refused)
	}
	if w.Refused != nil && w.Refused.Snapshot == "" {
		p.printf("  the source tree is invalid since %s\n", p.at(w.Refused.Since))
		if !r.SaysInvalid() {
			p.findings(w.Refused.Findings)
		}
	}
}

// part prints what goes on while the source tree is refused.
func (p *statusPrinter) part(r *control.Refusal) {
	last := ""
	if !r.Part.Time.IsZero() {
		last = ", published last at " + p.at(r.Part.Time)
	}
	p.printf("  since %s only a part of the source tree goes on: %s%s\n", p.at(r.Since), r.Part, last)
}

func revisionOf(commit string) string {
	if commit == "" {
		return ""
	}
	return ", revision " + commit
}

// source prints whether the source tree is published, and why not.
func (p *statusPrinter) source(r *status.Status) {
	s := r.Source
	switch {
	case s == nil:
	case s.Snapshot == "":
		p.printf("source: %s%s is invalid: %s, %s\n", s.Path, inParentheses(s.Revision), diag.Count(s.Errors, "error"), diag.Count(s.Warnings, "warning"))
		p.findings(s.Findings)
	case s.Published:
		p.printf("source: %s%s is published\n", s.Path, inParentheses(s.Revision))
	default:
		p.printf("source: %s (snapshot %s%s) is not published: %s\n", s.Path, s.Snapshot, revisionOf(s.Revision), r.Unpublished())
	}
}

func inParentheses(commit string) string {
	if commit == "" {
		return ""
	}
	return " (revision " + commit + ")"
}

func (p *statusPrinter) change(r *status.Status) {
	c := r.Change
	if c == nil {
		return
	}
	way := "forward"
	if c.Direction == publish.Back {
		way = "back"
	}
	p.printf("change: %s, from %s to %s, begun at %s", way, cmp.Or(c.From, "nothing"), c.To, p.at(c.Started))
	if c.Attempt > 1 {
		p.printf(", attempt %d", c.Attempt)
	}
	switch {
	case r.Retrying() != "":
		p.printf("\n  it is under way; retrying: %s\n", diag.Clip(r.Retrying(), diag.MaxText))
	case r.Watch != nil && r.Watch.Running != nil:
		p.printf("\n  it is under way\n")
	case r.Watch != nil:
		p.printf("\n  it was interrupted: the next pass of the watch continues it\n")
	default:
		p.printf("\n  it is under way, or was interrupted: then the next render or watch continues it\n")
	}
	if c.Refusal != nil {
		p.findings(c.Refusal.Findings)
	}
}

// refusal prints what Envoy refused and why.
func (p *statusPrinter) refusal(title string, r publish.Refusal) {
	p.printf("%s: snapshot %s, rejected at %s in the step %q\n", title, r.Snapshot, p.at(r.Time), r.Step)
	p.findings(r.Findings)
}

// findings prints the first findings of a list, and counts the others. A server may send any text, so findings
// escapes the text for the terminal.
func (p *statusPrinter) findings(list diag.List) {
	most, left := list.Most(mostOfAKind)
	for _, d := range most {
		p.printf("  %s\n", diag.Clip(fmt.Sprint(d), 2*diag.MaxText))
	}
	if left > 0 {
		p.printf("  … and %s\n", diag.Count(left, "more finding"))
	}
}

// envoy prints a line for an Envoy, and a line for each file that the Envoy does not run.
func (p *statusPrinter) envoy(e status.EnvoyReport) {
	if e.Error != "" {
		p.printf("Envoy %s\n", strings.TrimPrefix(e.Error, "envoy "))
		return
	}
	verdict := "in sync"
	if !e.InSync {
		verdict = "not in sync"
	}
	p.printf("Envoy %s: %s, %s", e.URL, verdict, e.State)
	for _, s := range status.Syncs {
		if n := e.Count(s); n > 0 {
			p.printf(", %d %s", n, s)
		}
	}
	p.unrest("drains", e.DrainingListeners, "listener", e.DrainingFilterChains, "filter chain")
	p.unrest("warms", e.WarmingListeners, "listener", len(e.WarmingClusters), "cluster")
	p.printf("\n")
	for _, s := range status.Syncs {
		if s != status.Synced {
			p.rows(e, s)
		}
	}
	if len(e.WarmingClusters) > 0 {
		p.printf("  warming clusters: %s\n", diag.Few(quoted(e.WarmingClusters), mostOfAKind))
	}
}

// unrest prints the numbers n and m of two kinds of things after a verb, as in "; drains 2 listeners and 1
// filter chain".
func (p *statusPrinter) unrest(verb string, n int, noun string, m int, other string) {
	var parts []string
	if n > 0 {
		parts = append(parts, diag.Count(n, noun))
	}
	if m > 0 {
		parts = append(parts, diag.Count(m, other))
	}
	if len(parts) > 0 {
		p.printf("; %s %s", verb, strings.Join(parts, " and "))
	}
}

// rows prints the files of an Envoy with the state s.
func (p *statusPrinter) rows(e status.EnvoyReport, s status.Sync) {
	printed := 0
	for _, row := range e.Subscriptions {
		if row.Sync != s {
			continue
		}
		if printed == mostOfAKind {
			p.printf("  … and %d more %s: --format json has them all\n", e.Count(s)-printed, s)
			return
		}
		printed++
		p.row(row)
	}
}

func (p *statusPrinter) row(r status.Row) {
	p.printf("  %-8s  %s", r.Sync, r.File)
	switch r.Sync {
	case status.Rejected, status.Stale:
		p.printf(" (%s): expected version %s, runs %s", r.Stats, cmp.Or(r.Version, "none"), cmp.Or(r.Runs, "none"))
	}
	if r.Sync == status.Rejected {
		p.printf(", and has rejected %s since its start", diag.Count(int(r.Refusals), "file"))
	}
	p.printf("\n")
	for i, reason := range r.Reasons {
		if i == mostOfAKind {
			p.printf("            … and %s\n", diag.Count(len(r.Reasons)-i, "more reason"))
			break
		}
		p.printf("            %s\n", reason)
	}
}

func quoted(names []string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", n)
	}
	return list
}

// retired prints the clusters and files that wait for their trim.
func (p *statusPrinter) retired(list []publish.Retired) {
	if len(list) == 0 {
		return
	}
	p.printf("retired, removed when nothing that drains can use them:\n")
	for i, g := range list {
		if i == mostOfAKind {
			p.printf("  … and %d more: --format json has them all\n", len(list)-i)
			return
		}
		what := g.File
		if g.Cluster != "" {
			what = fmt.Sprintf("cluster %q", g.Cluster)
		}
		since := "not before the change is complete"
		if !g.Since.IsZero() {
			since = "since " + p.at(g.Since)
		}
		p.printf("  %s, %s\n", what, since)
	}
}
