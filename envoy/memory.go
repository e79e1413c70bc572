package envoy

import (
	"context"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// An answer about statistics costs Envoy time in proportion to all its statistics, so an AckWait asks for as
// little as possible. Nobody else publishes into the directory. If an Envoy ran a version when it acknowledged
// a step, the Envoy still runs that version at the next step, provided that the process is the same and that
// no file of the next step has changed since (Subscription.Changed). If a version_text differs from that
// version, Envoy has accepted a file since. Texts are few, so the texts alone are asked for. If the texts show
// no ACK, and for CDS, whose clusters have to be warm, the AckWait asks for all statistics.

// memory is the last observation of an Envoy, with the Counters of earlier observations of the same process.
type memory struct {
	Observation
	seen map[string]time.Time // by stat prefix: Observation.asked of its Counters
}

// remember adds an observation to the memory of an Envoy.
func (f *Fleet) remember(a *Admin, o *Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[a]
	if known == nil || known.Incarnation != o.Incarnation || len(known.Counters) > 2*len(o.Counters)+maxRemembered {
		known = &memory{Observation{Counters: make(map[string]Counters), expanded: make(map[string][]string)}, make(map[string]time.Time)}
	}
	next := *o
	next.Counters, next.expanded = known.Counters, known.expanded
	maps.Copy(next.Counters, o.Counters)
	maps.Copy(next.expanded, o.expanded)
	for prefix := range o.Counters {
		known.seen[prefix] = o.asked
	}
	f.known[a] = &memory{next, known.seen}
}

// maxRemembered bounds the stat prefixes in a memory that the last observation lacks, such as those of removed
// clusters.
const maxRemembered = 10_000

// unlearn removes the files of subs, which are about to move, from the memory of an Envoy. Await remembers them
// again after the ACK.
func (f *Fleet) unlearn(a *Admin, subs []Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[a]
	if known == nil {
		return
	}
	for _, s := range subs {
		for _, prefix := range known.statPrefixes(s) {
			delete(known.Counters, prefix)
			delete(known.seen, prefix)
		}
		for _, prefix := range s.StatPrefixes {
			delete(known.expanded, prefix)
		}
	}
}

// forget drops the memory of an Envoy.
func (f *Fleet) forget(a *Admin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, a)
}

// recall returns an Envoy's remembered state of the files of subs as the observation before the rename. recall
// returns nil if version_text alone would not show an ACK, if another process answers, or if a stats_matcher
// may exclude a statistic that nobody has asked for yet.
func (f *Fleet) recall(ctx context.Context, a *Admin, subs []Subscription) *Observation {
	base := f.remembered(a, subs)
	if base == nil || base.Epoch > 0 || base.Matcher || !base.textsShowACK(base.subscribed(subs, f.o.Dir)) {
		return nil
	}
	s := a.session()
	defer s.close()
	if !s.stillRuns(ctx, base.Incarnation) {
		return nil
	}
	return base
}

// remembered returns an Envoy's remembered state of the files of subs. It returns nil without a memory, or if
// somebody has changed one of the files since, because Envoy's reaction is then unknown.
func (f *Fleet) remembered(a *Admin, subs []Subscription) *Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[a]
	if known == nil {
		return nil
	}
	o := known.Observation
	o.Counters, o.expanded = make(map[string]Counters), make(map[string][]string)
	for _, s := range subs {
		for _, prefix := range s.StatPrefixes {
			if has, ok := known.expanded[prefix]; ok {
				o.expanded[prefix] = has
			}
		}
		for _, prefix := range known.statPrefixes(s) {
			if !s.Changed.Before(known.seen[prefix]) {
				return nil
			}
			o.Counters[prefix] = known.Counters[prefix]
		}
	}
	return &o
}

// textsShowACK reports whether an ACK of the files changes each version_text, so that the texts alone show the ACK.
// For CDS, whose clusters also have to be warm, the result is false.
func (o *Observation) textsShowACK(subs []Subscription) bool {
	versions := o.versionsByPrefix(subs)
	for _, s := range subs {
		prefixes := o.statPrefixes(s)
		if s.API == "CDS" || s.Unmoved || len(prefixes) == 0 {
			return false
		}
		for _, prefix := range prefixes {
			if was := o.Counters[prefix].Version; was == "" || was == s.Version || len(versions[prefix]) > 1 {
				return false
			}
		}
	}
	return true
}

// readTexts asks for the texts alone, and returns an observation in which the Envoy has acknowledged all files of
// subs. It returns nil if the texts do not show these ACKs, or after an error. Call Read then.
func (a *Admin) readTexts(ctx context.Context, base *Observation, subs []Subscription) *Observation {
	s := a.session()
	defer s.close()
	now := *base
	now.asked = time.Now()
	stats, err := s.texts(ctx, statPrefixesOf(subs))
	if err != nil {
		return nil
	}
	now.Counters = maps.Clone(base.Counters)
	for prefix, c := range now.Counters {
		if text := stats.texts[prefix+versionText]; text != c.Version {
			now.Counters[prefix] = Counters{c.Attempts + 1, c.Successes + 1, c.Rejections, c.Failures, text} // the least that a new text implies
		}
	}
	if stateOf(statuses(base, &now, subs)) != Acked {
		return nil
	}
	return &now
}

// maxTexts bounds the stat prefixes that a filter names.
const maxTexts = 16

// texts asks for the version_text of stat prefixes. For more than maxTexts prefixes, it asks for all version_text.
func (s *session) texts(ctx context.Context, prefixes []string) (statistics, error) {
	filter := `\.version_text$`
	if len(prefixes) <= maxTexts {
		var names []string
		for _, prefix := range prefixes {
			before, after, pattern := strings.Cut(prefix, Any)
			name := regexp.QuoteMeta(before)
			if pattern {
				name += `.*` + regexp.QuoteMeta(after)
			}
			names = append(names, name)
		}
		filter = `^(` + strings.Join(names, "|") + `)` + filter
	}
	return s.askStats(ctx, url.Values{"type": {"TextReadouts"}, "filter": {filter}})
}
