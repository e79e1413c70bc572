package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// mostClients is the largest number of clients that a survey judges.
const mostClients = 1_000

// survey judges clients until the findings of all possible clients are known.
//
// The lookups of a call of a rule can have the same answers for two clients. Then both clients have the same
// findings from the call. So each call divides the clients into sets, and the survey judges one client of each set.
// It does not combine the sets of different calls.
type survey struct {
	judge   *validate.Judge
	cover   *variants.Cover
	depends *validate.Dependences
	clients []params.Parameters // the clients that were judged
	stopped error               // the reason why some sets have no judged client

	unmet  map[params.Set][]pending          // the calls that need a client of a set
	met    []params.Set                      // the sets in unmet that have the next client
	unseen int                               // the number of resources that no judged client gets
	groups map[*validate.Groups][]params.Set // for each group, the clients with a resource of the group
	known  map[params.Set]params.Set         // the results of knownIn
	found  map[diag.Identity]*clientFinding
	order  []*clientFinding
}

// pending is a call of a rule whose findings are unknown for some clients.
type pending struct {
	of   *xds.Resource // nil for a call of a rule with Snapshot
	call int           // the index of the call; allCalls before a client with the resource was judged
}

// allCalls means all calls of a resource.
const allCalls = -1

// clientFinding is a finding and its clients.
type clientFinding struct {
	diag.Diagnostic
	has   [diag.Info + 1]params.Set // the clients with the finding, by its severity
	about params.Set                // the clients that get the resource that the finding is about
}

func newSurvey(judge *validate.Judge, tree *variants.Tree) *survey {
	s := &survey{
		judge: judge, cover: variants.NewCover(tree), unmet: make(map[params.Set][]pending), groups: make(map[*validate.Groups][]params.Set),
		known: make(map[params.Set]params.Set), found: make(map[diag.Identity]*clientFinding),
	}
	var varying []*xds.Resource
	for _, k := range tree.Keys() {
		varying = append(varying, tree.Variants(k)...)
	}
	s.depends = judge.Dependences(varying)
	for _, r := range tree.All().All() {
		if set := s.cover.Gets(r); set != params.None {
			s.want(set, pending{r, allCalls})
			s.unseen++
		}
	}
	return s
}

// want records that the findings of a call are unknown for a set of clients.
func (s *survey) want(set params.Set, p pending) {
	if set == params.None {
		return
	}
	if s.unmet[set] == nil {
		s.cover.Want(set)
	}
	s.unmet[set] = append(s.unmet[set], p)
}

// next returns the next client to judge. ok is false if no further client is necessary, or if a limit is reached.
func (s *survey) next() (p params.Parameters, ok bool) {
	if s.stopped != nil || len(s.unmet) == 0 {
		return nil, false
	}
	if len(s.clients) == mostClients {
		s.stopped = fmt.Errorf("they tell more than %d clients apart", mostClients)
		return nil, false
	}
	p, s.met, ok = s.cover.Next()
	return p, ok
}

// add adds the findings of client p. The judge must have judged p last.
func (s *survey) add(p params.Parameters, list diag.List) {
	s.clients = append(s.clients, p)
	for _, d := range list {
		s.listed(d)
	}
	if !s.judge.Complete() {
		s.stopped = errors.New("there are too many findings")
		return
	}
	together := s.unseen > 0
	for _, set := range s.met {
		all := s.unmet[set]
		delete(s.unmet, set)
		for _, is := range all {
			s.meet(p, set, is)
		}
	}
	together = together && s.unseen == 0 // all resources with collected messages are known to depends from now on
	for i, call := range s.judge.SnapshotCalls() {
		switch {
		case call.Sampled:
			s.note(call, s.alike(p, nil, call))
		case together:
			s.judged(p, params.All, pending{nil, i}, call)
		}
	}
}

// listed adds one finding.
func (s *survey) listed(d diag.Diagnostic) {
	id := d.Identity()
	f := s.found[id]
	if f == nil {
		f = &clientFinding{Diagnostic: d}
		s.found[id], s.order = f, append(s.order, f)
	}
	f.Severity = min(f.Severity, d.Severity)
}

// meet adds the findings of a pending call. p is the judged client, which is in set.
func (s *survey) meet(p params.Parameters, set params.Set, is pending) {
	if is.of == nil {
		s.judged(p, set, is, s.judge.SnapshotCalls()[is.call])
		return
	}
	calls := s.judge.Calls(is.of)
	if is.call != allCalls {
		s.judged(p, set, is, calls[is.call])
		return
	}
	s.unseen--
	if !is.of.For.None() {
		s.depends.Judged(is.of)
	}
	for i, call := range calls {
		s.judged(p, set, pending{is.of, i}, call)
	}
}

// judged adds the findings of a call for all clients that are alike p. The rest of set still needs another client.
func (s *survey) judged(p params.Parameters, set params.Set, is pending, call validate.Call) {
	alike := s.alike(p, is.of, call)
	s.note(call, alike)
	s.want(s.cover.Minus(set, alike), is)
}

// alike returns the clients for which all lookups of a call have the same answers as for p. If r is not nil, alike
// returns only clients that get r.
func (s *survey) alike(p params.Parameters, r *xds.Resource, call validate.Call) params.Set {
	alike := params.All
	if r != nil {
		alike = s.cover.Gets(r)
	}
	for _, g := range s.depends.Groups(call) {
		sets, known := s.groups[g]
		if !known {
			for _, group := range g.Of {
				sets = append(sets, s.cover.Gets(group...))
			}
			s.groups[g] = sets
		}
		alike = s.cover.And(alike, s.cover.Alike(p, sets))
	}
	return alike
}

// note adds some clients to the findings of a call.
func (s *survey) note(call validate.Call, clients params.Set) {
	for _, is := range call.Found {
		if f := s.found[is.Identity]; f != nil { // otherwise Run left out the finding
			f.has[is.Severity] = s.cover.Or(f.has[is.Severity], clients)
			f.about = s.cover.Or(f.about, s.cover.Gets(is.About))
		}
	}
}

// list returns all findings. Its error tells why the survey has not judged some clients.
func (s *survey) list() (list diag.List, err error) {
	for _, f := range s.order {
		list = append(list, s.said(f))
	}
	if s.cover.Err() != nil { // the computed sets can't be used
		for i, f := range s.order {
			list[i] = f.Diagnostic
		}
	}
	return list, cmp.Or(s.stopped, s.cover.Err())
}

// said returns a finding with its final severity and message. An error stays an error if every client with the
// resource has the error, or if a client that certainly exists has the error. Otherwise the error becomes a
// warning. Unless all clients with the resource have the finding, the message names an affected client.
func (s *survey) said(f *clientFinding) diag.Diagnostic {
	d := f.Diagnostic
	who := s.cover.Or(f.has[:]...)
	if errors := f.has[diag.Error]; errors != params.None {
		if s.others(f, errors) && s.knownIn(errors) == params.None {
			d.Severity = diag.Warning
		} else {
			who = errors
		}
	}
	if who == params.None || !s.others(f, who) {
		return d
	}
	example, ok := s.cover.Example(s.knownIn(who))
	if !ok {
		example, _ = s.cover.Example(who)
	}
	d.Message += "; this concerns a client with " + words(s.cover.Counts(who, example))
	return d
}

// others reports whether a client that is not in a set gets the resource of a finding. If a limit was reached, it
// asks only for judged clients.
func (s *survey) others(f *clientFinding, set params.Set) bool {
	others := s.cover.Minus(f.about, set)
	if s.stopped == nil {
		return others != params.None
	}
	return slices.ContainsFunc(s.clients, func(p params.Parameters) bool { return s.cover.Has(others, p) })
}

// knownIn returns the clients of a set that certainly exist.
func (s *survey) knownIn(set params.Set) params.Set {
	known, ok := s.known[set]
	if !ok {
		known = s.cover.KnownIn(set)
		s.known[set] = known
	}
	return known
}

// words returns the keys that a client sends, and the keys that it does not send, as in: env=test and no region.
func words(sent params.Parameters, absent []string) string {
	var list []string
	if len(sent) > 0 {
		list = append(list, sent.String())
	}
	for _, key := range absent {
		list = append(list, "no "+params.Word(key))
	}
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}
