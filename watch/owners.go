package watch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/source/owners"
	"xdspub/validate/transition"
	"xdspub/watch/part"
	"xdspub/xds"
)

// ownersFolder is the folder of the records of owners in .xdspub. The name of a record is the hash of its bytes, and
// the manifest has the name.
const ownersFolder = "owners"

// maxOwners bounds a record of owners, in bytes.
const maxOwners = 64 << 20

// ownersRecord has the owners of the published resources. A new process needs the record for names that the source tree
// lacks, because somebody has removed them from a folder with errors, or because their file can't be read.
type ownersRecord struct {
	Layout int `json:"layout"`
	// Patterns are those of the setting owners.
	Patterns []string `json:"patterns"`
	// Names has the names of the owned resources, by owner and type. A resource without an entry is shared.
	Names map[string]map[string][]string `json:"names"`
}

// ownersOf is the record of a Snapshot.
type ownersOf struct {
	snapshot *xds.Snapshot // nil for none
	name     string
	data     []byte
}

// recordOf returns the name of the record of owners of a Snapshot. An edit of contents keeps the record.
func (o *ownersOf) recordOf(s *xds.Snapshot, patterns []string) string {
	if o.snapshot != nil {
		edits, ok := s.ChangesSince(o.snapshot)
		moved := func(e xds.Edited) bool { return e.Was == nil || e.Is == nil || e.Was.Owner != e.Is.Owner }
		if ok && !slices.ContainsFunc(edits, moved) {
			o.snapshot = s
			return o.name
		}
	}
	r := ownersRecord{Layout: 1, Patterns: patterns, Names: make(map[string]map[string][]string)}
	for _, is := range s.All() {
		if is.Owner == "" {
			continue
		}
		of := r.Names[is.Owner]
		if of == nil {
			of = make(map[string][]string)
			r.Names[is.Owner] = of
		}
		if names := of[is.Type.API]; len(names) == 0 || names[len(names)-1] != is.Name { // else a variant
			of[is.Type.API] = append(names, is.Name)
		}
	}
	data, _ := json.Marshal(r) // maps and texts can be encoded
	*o = ownersOf{s, ownersName(data), data}
	return o.name
}

// ownersName returns the name of a record.
func ownersName(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:16])
}

// keepOwners writes the record that a plan refers to, and reports whether the record is new.
func (c *Controller) keepOwners(plan *planner.Plan) (wrote bool, err error) {
	name, records := plan.Change.Manifest.Owners, c.dir.Records(ownersFolder)
	if name == "" || name != c.owners.recordOf(plan.Snapshot, c.options.Source.Owners) {
		return false, nil
	}
	if data, err := records.Read(name, maxOwners); err == nil && ownersName(data) == name {
		return false, nil
	}
	if err := records.Write(name, c.owners.data); err != nil {
		return false, fmt.Errorf("record the owners of resources: %w", err)
	}
	return true, records.Flush()
}

// forgetOwners removes the records of owners that the manifest does not refer to.
func (c *Controller) forgetOwners(name string) error {
	records := c.dir.Records(ownersFolder)
	all, err := records.List()
	for other := range all {
		if other != name && err == nil {
			err = records.Remove(other)
		}
	}
	return err
}

// readOwners reads the record of owners; nil if the record is missing, damaged, or of a newer program.
func (c *Controller) readOwners(name string) *ownersRecord {
	data, err := c.dir.Records(ownersFolder).Read(name, maxOwners)
	var r ownersRecord
	if err != nil || ownersName(data) != name || json.Unmarshal(data, &r) != nil || r.Layout != 1 {
		return nil
	}
	return &r
}

// owned returns a Snapshot of published files with the owners on record. patterns is nil if the owners are unknown.
func (c *Controller) owned(s *xds.Snapshot, m publish.Manifest) (is *xds.Snapshot, patterns []string) {
	r := c.readOwners(m.Owners)
	if r == nil || len(c.options.Source.Owners) == 0 {
		return s, nil
	}
	of := make(map[xds.Key]string)
	for owner, types := range r.Names {
		for api, names := range types {
			for _, name := range names {
				of[xds.Key{Type: xds.TypeOfAPI(api), Name: name}] = owner
			}
		}
	}
	return ownedBy(s, func(was *xds.Resource) string { return of[was.Key] }), r.Patterns
}

// ownedBy returns a Snapshot of the same resources with the owners that a function returns.
func ownedBy(s *xds.Snapshot, owner func(*xds.Resource) string) *xds.Snapshot {
	var all []*xds.Resource
	for _, r := range s.All() {
		all = append(all, r.OwnedBy(owner(r)))
	}
	return xds.NewSnapshot(all)
}

// adopt returns the live snapshot with the owners of read, the source tree, if the owners are unknown: nothing was
// published with the patterns of the settings yet. waits is why an owner can't be known.
func (c *Controller) adopt(live, read *xds.Snapshot) (is *xds.Snapshot, waits string) {
	if slices.Equal(c.live.owners, c.options.Source.Owners) {
		return live, ""
	}
	var unknown []string
	is = ownedBy(live, func(was *xds.Resource) string {
		if now := read.Lookup(was.Type, was.Name); now != nil {
			return now.Owner
		}
		unknown = append(unknown, was.Key.String())
		return ""
	})
	if len(unknown) > 0 {
		return is, fmt.Sprintf("nobody knows which folder owns %s: publish a faultless source tree once", diag.Few(unknown, mostUnknown))
	}
	c.live.snapshot, c.live.owners = is, c.options.Source.Owners
	return is, ""
}

// mostUnknown is the number of resources without a known owner that a text names.
const mostUnknown = 3

// settledTree is a settled source tree with its plan.
type settledTree struct {
	part.Settled
	mixed *check.Result // nil if the Snapshot is published already
	plan  *planner.Plan
}

// settle returns what of a refused source tree is published by owners. Without owners, settle returns the zero value.
func (c *Controller) settle(ctx context.Context, t *part.Tree, checked *check.Result, since time.Time) (s settledTree, err error) {
	if len(c.options.Source.Owners) == 0 {
		return s, nil
	}
	if s.Waits = cmp.Or(c.frozenText(), c.live.unknown); s.Waits != "" {
		return s, nil
	}
	t.Faults = slices.DeleteFunc(t.Faults, func(d diag.Diagnostic) bool { return transition.IsGuard(d.Code) }) // Judge finds them again
	t.Judge = func(mixed *xds.Snapshot, held []string) (diag.List, error) {
		if s.plan != nil {
			c.Trust(false) // the last plan was not published
		}
		if s.mixed, err = c.judgePart(ctx, mixed, checked); err != nil {
			return nil, err
		}
		guard := c.guard(s.mixed)
		if s.plan, err = c.plan(ctx, s.mixed, planning{of: c.live.partOf(held, since), guard: guard}); err != nil || ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
		if s.plan != nil && s.plan.Held != nil {
			c.live.reject(t, s.plan.Held.Findings)
			return rejections(s.plan.Held), nil
		}
		return append(atLeast(s.mixed.Diagnostics, c.refuses()), removals(guard)...), nil
	}
	if s.Settled, err = t.Settle(); s.Snapshot == t.Live || s.Waits != "" {
		s.mixed, s.plan = nil, nil
	}
	if i := slices.IndexFunc(s.Held, func(owner string) bool { return c.live.interrupted != nil && !c.live.interrupted.Holds(owner) }); i >= 0 {
		s.Settled = part.Settled{Waits: interrupted + ", in the folder " + s.Held[i]}
	}
	return s, err
}

// rejections returns the errors of a refusal; at least one.
func rejections(r *publish.Refusal) diag.List {
	list := atLeast(r.Findings, diag.Error)
	if len(list) == 0 {
		list = diag.List{{Message: "Envoy or clients have rejected this snapshot"}}
	}
	return list
}

// removals returns a finding about each resource that a guard has refused to remove; none without a guard.
func removals(g *transition.Guard) (list diag.List) {
	if g == nil {
		return nil
	}
	for _, r := range g.Refused() {
		of := diag.Resource{Type: r.Type.URL(), Name: r.Name}
		list = append(list, diag.Diagnostic{Code: r.Code, Resource: of, Message: r.Key.String() + " would be removed"})
	}
	return list
}

// atLeast returns the findings of at least a severity.
func atLeast(list diag.List, least diag.Severity) diag.List {
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool { return d.Severity > least })
}

// partOf returns the record of a part. since is since when the source tree is refused. The record keeps the times of
// owners that the last part has held.
func (l *live) partOf(held []string, since time.Time) *publish.Part {
	p, known := &publish.Part{Since: since}, l.holds
	if known == nil && l.part != nil {
		known = l.part.Held
	}
	for _, owner := range held {
		h := owners.Held{Owner: owner, Since: since}
		if i := slices.IndexFunc(known, func(k owners.Held) bool { return k.Owner == owner }); i >= 0 {
			h = known[i]
		} else if len(known) > 0 {
			h.Since = now()
		}
		p.Held = append(p.Held, h)
	}
	return p
}

// reject records that Envoys or clients rejected the folders that findings are about.
func (l *live) reject(t *part.Tree, findings diag.List) {
	for _, d := range atLeast(findings, diag.Error) {
		for _, owner := range t.Involved(d) {
			if l.rejected == nil {
				l.rejected = make(map[string]*xds.Snapshot)
			}
			l.rejected[owner] = t.Read
		}
	}
}

// rejects returns the owners whose folders were rejected, and have not changed since. rejects forgets changed folders.
func (l *live) rejects(read *xds.Snapshot) (list []string) {
	for owner, was := range l.rejected {
		if part.Changed(was, read)[owner] {
			delete(l.rejected, owner)
		} else {
			list = append(list, owner)
		}
	}
	return list
}

// publishedPart records that the source tree of is published without the folders of held owners.
func (l *live) publishedPart(of *check.Result, held []owners.Held) {
	was := l.was
	l.was = make(map[string]*check.Result)
	for _, h := range held {
		l.was[h.Owner] = cmp.Or(was[h.Owner], l.of)
	}
	l.of = of
}

// trees returns the source trees that the published resources are from.
func (l *live) trees() (list []*check.Result) {
	for _, of := range append(slices.Collect(maps.Values(l.was)), l.of) {
		if of != nil && !slices.Contains(list, of) {
			list = append(list, of)
		}
	}
	return list
}
