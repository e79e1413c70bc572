package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/source/owners"
	"xdspub/xds/clients"
)

// Verdict returns the verdict in one line: in sync, or the list of faults.
func (s *Status) Verdict() string {
	if !s.InSync {
		return "not in sync: " + strings.Join(s.faults(), "; ")
	}
	var says []string
	if len(s.Envoys) == 0 && !s.State {
		says = append(says, "the files are as published (no Envoy was asked: pass --envoy-admin)")
	}
	if s.Clients != nil {
		says = append(says, diag.Count(clients.Connected(s.Clients), "client"))
	}
	if notice := s.Certificates.Notice(); notice != "" {
		says = append(says, notice)
	}
	if s.Trial != nil {
		says = append(says, s.Trial.String())
	}
	return strings.TrimSuffix("in sync: "+strings.Join(says, ", "), ": ")
}

// faults returns the faults as text.
func (s *Status) faults() []string {
	var all faults
	s.faultsOfFiles(&all)
	s.faultsOfWatch(&all)
	s.faultsOfSource(&all)
	fault := s.Certificates.Fault()
	all.add(fault != "", "%s", fault)
	s.faultsOfEnvoys(&all)
	fault = clients.Fault(s.Clients)
	all.add(fault != "", "%s", fault)
	return all
}

// faults is a list of sentences.
type faults []string

func (f *faults) add(is bool, format string, args ...any) {
	if is {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

func (s *Status) faultsOfFiles(all *faults) {
	all.add(s.Published == nil, "nothing is published")
	all.add(s.Paused != nil, "publishing is paused")
	all.add(s.Pinned != nil, "publishing is pinned")
	all.add(s.Frozen != nil && s.Watch != nil && s.Watch.Waits != nil, "publishing is frozen")
	all.add(s.Guarded != nil, "a change waits for an approval")
	all.add(s.Approved != nil, "an approval waits for its change")
	if s.Trial.IsFault() {
		all.add(true, "%s", s.Trial)
	}
	if p := s.Published; p != nil && p.Part != nil && (s.Watch == nil || s.Watch.Refused == nil && s.Watch.Waits == nil) {
		held := ""
		if len(p.Part.Held) > 0 {
			held = "; " + owners.Text(p.Part.Held)
		}
		all.add(true, "only a part of a source tree is published, whose rest waits since %s%s", p.Part.Since.Format(time.RFC3339), held)
	}
	all.add(s.Change != nil, "a change is under way or was interrupted")
	all.add(s.Retrying() != "", "Envoy rejects a step for now, retrying")
	all.add(s.Incomplete, "the record of published files is incomplete")
	all.add(len(s.Drifted) > 0, "%s changed by hand", diag.Count(len(s.Drifted), "file"))
	all.add(len(s.Missing) > 0, "%s missing", diag.Count(len(s.Missing), "file"))
	all.add(len(s.Held) > 0, "%s held", diag.Count(len(s.Held), "snapshot"))
}

func (s *Status) faultsOfWatch(all *faults) {
	if w := s.Watch; w != nil {
		if refused := w.Refused; refused != nil {
			all.add(refused.Snapshot == "" && !s.SaysInvalid(), "the source tree is invalid (%s)%s", refused.Count(), refused.GoesOn())
			all.add(refused.Snapshot != "" && len(s.Held) == 0, "Envoy rejected the source tree%s", refused.GoesOn())
		}
		fault := w.Upstream.Fault()
		all.add(fault != "", "%s", fault)
		fault = w.Store.Fault()
		all.add(fault != "", "%s", fault)
		all.add(s.quorumMissed(), "%s", w.UnconfirmedText())
		if r := w.Rollout(); r != nil {
			all.add(true, "%s", r)
		}
		all.add(w.Failed != "", "the watch can't publish")
		all.add(s.waitsForTrial(), "a change waits for the confirmation of another one")
	}
	all.add(s.Replaced(), "the published files are not those that the watch has published")
	fault, faulty := watchFaults[s.WatchState]
	all.add(faulty, "%s", fault)
	all.add(s.State && s.WatchState == WatchNone, "no server is running")
}

func (s *Status) faultsOfSource(all *faults) {
	if of := s.Source; of != nil && !of.Published {
		goesOn := ""
		if s.SaysInvalid() && s.Watch.Refused != nil {
			goesOn = s.Watch.Refused.GoesOn()
		}
		all.add(of.Snapshot == "", "the source tree is invalid (%s)%s", diag.CountFindings(of.Errors, of.Warnings), goesOn)
		all.add(of.Snapshot != "", "the source tree is not published")
	}
}

func (s *Status) faultsOfEnvoys(all *faults) {
	var down, silent, behind int
	for _, e := range s.Envoys {
		switch {
		case e.Down:
			down++
		case e.Error != "":
			silent++
		case !e.InSync:
			behind++
		}
	}
	add := func(n int, one, more string) {
		if n != 1 {
			one = more
		}
		all.add(n > 0, "%d of %d Envoys %s", n, len(s.Envoys), one)
	}
	add(down, "is down", "are down")
	add(silent, "does not answer", "do not answer")
	add(behind, "is not in sync", "are not in sync")
}

// watchFaults has the text of each WatchState in which no watch is known to publish changes.
var watchFaults = map[WatchState]string{
	WatchEnded:   "no watch is running",
	WatchKilled:  "the watch was killed",
	WatchSilent:  "the watch does not answer",
	WatchUnknown: "the watch can't be asked",
}

// Unpublished returns why a valid source tree is not published.
func (s *Status) Unpublished() string {
	fault, faulty := watchFaults[s.WatchState]
	switch {
	case slices.ContainsFunc(s.Held, func(h publish.Refusal) bool { return h.Snapshot == s.Source.Snapshot }),
		s.Watch != nil && s.Watch.Refused != nil && s.Watch.Refused.Snapshot == s.Source.Snapshot:
		return "it is held, since Envoy rejected it"
	case s.Paused != nil:
		return "publishing is paused, see above"
	case s.Pinned != nil:
		return "publishing is pinned, see above"
	case s.Frozen != nil:
		return "publishing is frozen, see above"
	case s.Guarded != nil:
		return "a change waits for an approval, see above"
	case s.Trial != nil:
		return "another snapshot awaits confirmation, see above"
	case s.Change != nil:
		return "a change is under way or was interrupted"
	case faulty:
		return fault + ", see above"
	case s.Watch != nil && s.Watch.Failed != "":
		return "the watch can't publish, see above"
	case s.Watch != nil && s.Watch.Refused != nil && s.watchesSource():
		return "the watch refuses it, see above"
	case s.Watch != nil && !s.watchesSource():
		return "the watch publishes " + s.Watch.Source
	case s.Watch != nil:
		return "the watch has not read it yet"
	}
	return fmt.Sprintf("publish it with xdspub render --out %s %s", s.PublishedTo(), s.Source.Path)
}

// Retrying returns why Envoys reject a step, which they get again; empty if they reject no step.
func (s *Status) Retrying() string {
	if s.Watch == nil || s.Watch.Running == nil {
		return ""
	}
	return s.Watch.Running.Retrying
}
