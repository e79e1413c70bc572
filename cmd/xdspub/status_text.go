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
	"xdspub/watch/status"
)

// mostOfAKind is how many of one kind are printed as text, such as files that an
// Envoy has rejected; the others are counted.
const mostOfAKind = 10

// writeStatus prints a report for a person: what is wrong comes first.
func writeStatus(w io.Writer, r *statusReport, now time.Time) error {
	p := &statusPrinter{now: now}
	p.verdict(r)
	p.published(r)
	p.watch(r)
	p.source(r)
	p.certificates(r.certificates())
	p.change(r)
	if r.Incomplete {
		p.printf("record: the list of published files was removed or damaged, so that it is not known which of them were changed by hand; %s\n", mends(r))
	}
	if len(r.Drifted) > 0 {
		p.printf("changed by hand: %s; %s\n", diag.Few(r.Drifted, mostOfAKind), mends(r))
	}
	if len(r.Missing) > 0 {
		p.printf("missing: %s; an Envoy that starts rejects what names them; %s\n", diag.Few(r.Missing, mostOfAKind), mends(r))
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
	if last := r.LastRefusal; last != nil && !slices.ContainsFunc(r.Held, func(h publish.Refusal) bool { return h.Snapshot == last.Snapshot && h.Time.Equal(last.Time) }) {
		p.refusal("last rejection", *last)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// mends says what publishes again what is missing or not as it was published.
func mends(r *statusReport) string {
	if r.Watch != nil {
		return "the next pass of the watch mends that"
	}
	return fmt.Sprintf("mend that with xdspub render --out %s SRC", r.publishedTo())
}

// badness orders Envoys, the worst first.
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

// verdict is the first line.
func (p *statusPrinter) verdict(r *statusReport) {
	if r.InSync {
		var says []string
		if len(r.Envoys) == 0 {
			says = append(says, "the files are as published (no Envoy was asked: pass --envoy-admin)")
		}
		if connected, _ := countClients(r.Clients); r.Clients != nil {
			says = append(says, diag.Count(connected, "client"))
		}
		if notice := r.certificates().Notice(); notice != "" {
			says = append(says, notice)
		}
		p.printf("%s\n", strings.TrimSuffix("in sync: "+strings.Join(says, ", "), ": "))
		return
	}
	p.printf("not in sync: %s\n", strings.Join(r.wrong(), "; "))
}

// wrong returns what is not in sync, in words.
func (r *statusReport) wrong() (wrong []string) {
	add := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	add(r.Published == nil, "nothing is published")
	add(r.Change != nil, "a change is under way or was interrupted")
	add(r.retrying() != "", "Envoy rejects a step for now, retrying")
	add(r.Incomplete, "the record of published files is incomplete")
	add(len(r.Drifted) > 0, "%s changed by hand", diag.Count(len(r.Drifted), "file"))
	add(len(r.Missing) > 0, "%s missing", diag.Count(len(r.Missing), "file"))
	add(len(r.Held) > 0, "%s held", diag.Count(len(r.Held), "snapshot"))
	if w := r.Watch; w != nil {
		if refused := w.Refused; refused != nil {
			add(refused.Snapshot == "" && !r.saysInvalid(), "the source tree is invalid (%s)", refused.Count())
			add(refused.Snapshot != "" && len(r.Held) == 0, "Envoy rejected the source tree")
		}
		add(w.Failed != "", "the watch can't publish")
	}
	add(r.replaced(), "the published files are not those that the watch has published")
	fault, faulty := watchFaults[r.WatchState]
	add(faulty, "%s", fault)
	if s := r.Source; s != nil && !s.Published {
		add(s.Snapshot == "", "the source tree is invalid (%s)", diag.CountFindings(s.Errors, s.Warnings))
		add(s.Snapshot != "", "the source tree is not published")
	}
	fault = r.certificates().Fault()
	add(fault != "", "%s", fault)
	var down, silent, behind int
	for _, e := range r.Envoys {
		switch {
		case e.Down:
			down++
		case e.Error != "":
			silent++
		case !e.InSync:
			behind++
		}
	}
	add(down > 0, "%s", some(down, len(r.Envoys), "Envoys", "is down", "are down"))
	add(silent > 0, "%s", some(silent, len(r.Envoys), "Envoys", "does not answer", "do not answer"))
	add(behind > 0, "%s", some(behind, len(r.Envoys), "Envoys", "is not in sync", "are not in sync"))
	if connected, behind := countClients(r.Clients); behind > 0 {
		add(true, "%s", clientsBehind(behind, connected))
	}
	return wrong
}

// some says what n of all do: "1 of 3 Envoys is down".
func some(n, all int, nouns, one, more string) string {
	if n != 1 {
		one = more
	}
	return fmt.Sprintf("%d of %d %s %s", n, all, nouns, one)
}

func clientsBehind(n, all int) string {
	return some(n, all, "clients", "is not in sync", "are not in sync")
}

// watchFaults are the states of a watch that publishes no change of its source tree.
var watchFaults = map[watchState]string{
	watchEnded:   "no watch is running",
	watchKilled:  "the watch was killed",
	watchSilent:  "the watch does not answer",
	watchUnknown: "the watch can't be asked",
}

func (p *statusPrinter) published(r *statusReport) {
	s := r.Published
	if s == nil {
		return
	}
	p.printf("published: snapshot %s at %s%s", s.Snapshot, p.at(s.Time), revisionOf(s.Revision))
	var counts []string
	for _, api := range slices.Sorted(maps.Keys(s.Resources)) {
		counts = append(counts, fmt.Sprintf("%s %d", api, s.Resources[api]))
	}
	p.printf("\n  resources: %s\n", cmp.Or(strings.Join(counts, ", "), "none"))
}

// at returns a time, and how long ago that was.
func (p *statusPrinter) at(t time.Time) string {
	text := t.UTC().Format(time.RFC3339)
	if ago := p.now.Sub(t).Truncate(time.Second); ago > 0 {
		text += fmt.Sprintf(" (%s ago)", ago)
	}
	return text
}

// watch says whether a watch is running, and what it says.
func (p *statusPrinter) watch(r *statusReport) {
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
	if w.Failed != "" {
		p.printf("  can't publish: %s\n", w.Failed)
	}
	if r.replaced() {
		p.printf("  has published snapshot %s: somebody has put other files in its place; the next rescan mends that\n", w.Snapshot)
	}
	// What Envoy refused is on record, and told from there. A source tree that status checks tells its own
	// findings.
	if w.Refused != nil && w.Refused.Snapshot == "" {
		p.printf("  the source tree is invalid since %s\n", p.at(w.Refused.Since))
		if !r.saysInvalid() {
			p.findings(w.Refused.Findings)
		}
	}
}

func revisionOf(commit string) string {
	if commit == "" {
		return ""
	}
	return ", revision " + commit
}

// source compares the source tree with what is published, and says why they differ.
func (p *statusPrinter) source(r *statusReport) {
	s := r.Source
	switch {
	case s == nil:
	case s.Snapshot == "":
		p.printf("source: %s%s is invalid: %s, %s\n", s.Path, inParentheses(s.Revision), diag.Count(s.Errors, "error"), diag.Count(s.Warnings, "warning"))
		p.findings(s.Findings)
	case s.Published:
		p.printf("source: %s%s is published\n", s.Path, inParentheses(s.Revision))
	default:
		p.printf("source: %s (snapshot %s%s) is not published: %s\n", s.Path, s.Snapshot, revisionOf(s.Revision), unpublished(r))
	}
}

func inParentheses(commit string) string {
	if commit == "" {
		return ""
	}
	return " (revision " + commit + ")"
}

// unpublished says why a valid source tree is not published.
func unpublished(r *statusReport) string {
	fault, faulty := watchFaults[r.WatchState]
	switch {
	case slices.ContainsFunc(r.Held, func(h publish.Refusal) bool { return h.Snapshot == r.Source.Snapshot }):
		return "it is held, since Envoy rejected it"
	case r.Change != nil:
		return "a change is under way or was interrupted"
	case faulty:
		return fault + ", see above"
	case r.Watch != nil && r.Watch.Failed != "":
		return "the watch can't publish, see above"
	case r.Watch != nil && !r.watchesSource():
		return "the watch publishes " + r.Watch.Source
	case r.Watch != nil:
		return "the watch has not read it yet"
	}
	return fmt.Sprintf("publish it with xdspub render --out %s %s", r.publishedTo(), r.Source.Path)
}

// retrying says why Envoys reject a step that they are offered again.
func (r *statusReport) retrying() string {
	if r.Watch == nil || r.Watch.Running == nil {
		return ""
	}
	return r.Watch.Running.Retrying
}

func (p *statusPrinter) change(r *statusReport) {
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
	case r.retrying() != "":
		p.printf("\n  it is under way; retrying: %s\n", diag.Clip(r.retrying(), diag.MaxText))
	case r.Watch != nil && r.Watch.Running != nil:
		p.printf("\n  it is under way\n")
	case r.Watch != nil:
		p.printf("\n  it was interrupted: the next pass of the watch goes on with it\n")
	default:
		p.printf("\n  it is under way, or was interrupted: then the next render or watch goes on with it\n")
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

// findings prints the first findings of a list, and counts the others. A server may say anything: nothing of it
// reaches the terminal as it is.
func (p *statusPrinter) findings(list diag.List) {
	most, left := list.Most(mostOfAKind)
	for _, d := range most {
		p.printf("  %s\n", diag.Clip(fmt.Sprint(d), 2*diag.MaxText))
	}
	if left > 0 {
		p.printf("  … and %s\n", diag.Count(left, "more finding"))
	}
}

// envoy prints a line for an Envoy, and one for each file that it does not run.
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

// unrest says how many of two kinds are on their way.
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

// rows prints the files of which an Envoy makes one thing.
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

// retired prints what waits for its trim.
func (p *statusPrinter) retired(list []publish.Retired) {
	if len(list) == 0 {
		return
	}
	p.printf("going, once nothing that drains can use it:\n")
	for i, g := range list {
		if i == mostOfAKind {
			p.printf("  … and %d more: --format json has them all\n", len(list)-i)
			return
		}
		what := g.File
		if g.Cluster != "" {
			what = fmt.Sprintf("cluster %q", g.Cluster)
		}
		since := "not before the change is through"
		if !g.Since.IsZero() {
			since = "since " + p.at(g.Since)
		}
		p.printf("  %s, %s\n", what, since)
	}
}
