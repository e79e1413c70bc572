package envoy

import (
	"context"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// What Envoy says of its statistics costs it time in proportion to all that it has, so an AckWait
// asks as little as it can. Nobody else publishes into the directory: what an Envoy was seen to
// run when it acknowledged a step it still runs at the next one, as long as it is the same
// process and no file of the next one has changed since (Subscription.Changed). Where a version_text is another one than that, Envoy has taken a file since, and
// the texts, which are few, are all that has to be asked for. All else is as without a
// memory: where the texts do not show an ACK, and for CDS, whose clusters have to be warm,
// everything is asked for.

// memory is what an Envoy was seen to run.
type memory struct {
	Observation
	seen map[string]time.Time // by stat prefix: when the question was sent
}

// remember keeps what an Envoy was seen to run.
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

// maxRemembered bounds the stat prefixes that are remembered of clusters that are gone.
const maxRemembered = 10_000

// unlearn drops what is remembered of files that are about to move: it is true again once an
// Envoy has acknowledged them.
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

// forget drops what is remembered of an Envoy.
func (f *Fleet) forget(a *Admin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, a)
}

// recall returns what an Envoy was seen to run of the files of subs, as the observation before
// their rename. It is nil where an ACK of them would not show in version_text alone, where
// another process answers, or where a stats_matcher may exclude what nobody has asked for yet.
func (f *Fleet) recall(ctx context.Context, a *Admin, subs []Subscription) *Observation {
	base := f.remembered(a, subs)
	if base == nil || base.Epoch > 0 || base.Matcher || !base.turnsBy(base.subscribed(subs, f.o.Dir)) {
		return nil
	}
	s := a.session()
	defer s.close()
	if !s.stillRuns(ctx, base.Incarnation) {
		return nil
	}
	return base
}

// remembered returns what an Envoy was seen to run of the files of subs. It is nil where that may
// not be so any more: somebody else has changed a file, and who knows what Envoy made of it.
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

// turnsBy reports whether an ACK of the files changes each version_text.
func (o *Observation) turnsBy(subs []Subscription) bool {
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

// readTexts asks for the texts alone. It returns nil where they do not show that the Envoy has
// taken all files of subs since base, be it for an error: then Read says more.
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
			now.Counters[prefix] = Counters{c.Attempts + 1, c.Successes + 1, c.Rejections, c.Failures, text} // at least
		}
	}
	if stateOf(statuses(base, &now, subs)) != Acked {
		return nil
	}
	return &now
}

// maxTexts is how many texts are asked for by their names.
const maxTexts = 16

// texts asks for the version_text of stat prefixes, and perhaps for others.
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
