package validate

import (
	"slices"
	"sync"

	"xdspub/xds"
)

// Table maps names to texts that depend on all names of some types, such as the existing name most like a missing
// name. An edit that adds or removes such a name discards the Table.
type Table struct {
	types   []*xds.Type
	indexes []anyIndex
	find    func(*LookupPass) map[string]string
}

// NewTable returns a Table. It calls find for the whole map. find may depend on the names of all resources of the
// types, and on the names in the indexes.
func NewTable(types []*xds.Type, find func(*LookupPass) map[string]string, indexes ...anyIndex) *Table {
	return &Table{types, indexes, find}
}

// Lookup returns the text under a name.
func (t *Table) Lookup(v View, name string) string {
	answer := t.of(v.from)[name]
	v.recorder.note(question{about: aboutTable, index: t, name: name}, answer)
	return answer
}

// Hint returns what Lookup returns, for the help of a finding. Neither the finding nor its message may depend on
// the answer.
func (t *Table) Hint(v View, name string) string {
	answer := t.of(v.from)[name]
	v.recorder.hint(question{about: aboutTable, index: t, name: name}, answer)
	return answer
}

// of returns the map of t in the Snapshot of a, and makes the map if necessary.
func (t *Table) of(a *answers) map[string]string {
	t.bring(a)
	made, ok := a.made.Load(t)
	if !ok {
		made, _ = a.made.LoadOrStore(t, sync.OnceValue(func() map[string]string {
			p := a.pass(a.options, nil, nil)
			return t.find(&p)
		}))
	}
	return made.(func() map[string]string)()
}

func (t *Table) bring(a *answers) {
	if !a.behind[t] {
		return
	}
	delete(a.behind, t)
	for _, x := range t.indexes {
		x.bring(a)
	}
	if slices.ContainsFunc(t.types, func(t *xds.Type) bool { return a.edit.renamed[t] }) ||
		slices.ContainsFunc(t.indexes, func(x anyIndex) bool { return a.edit.renamedIn[x] }) {
		a.made.Delete(t)
		a.edit.note(t, "", false)
	}
}

func (t *Table) still(a *answers, q question, was any) bool { return was == t.of(a)[q.name] }
