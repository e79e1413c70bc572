package decode

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
	"xdspub/source/syntax"
)

// respelled reports a value that only Envoy's parser takes, and writes taken instead: the same value as
// protojson takes it. The fix of the finding does the same in the source. clear means that the author can mean nothing
// else, so that the fix is safe.
func (r *reader) respelled(p place, reason string, taken jsontext.Value, clear bool) {
	f := r.explain(p, false, reason)
	if !f.Sensitive {
		doc := r.v.doc
		text := doc.source.Written(taken)
		switch pair := (wish{field: p.written, format: doc.source.Format}).pair(text, false); {
		case strings.HasSuffix(reason, "{"):
			f.Help = "write the value itself: " + pair
		case !strings.Contains(f.Help, strings.Trim(text, `"`)):
			f.Help = "write " + pair
		}
		if e, ok := doc.Replace(steps(r.v.path.Join(p.path)), taken); ok {
			f.Fixes = []diag.Fix{{Title: "write " + text, Safe: clear, Edits: []diag.Edit{e}}}
		}
	}
	r.d.report(leniently(diag.List{f})[0])
	r.out.Write(taken)
}

// saysNothing reports whether a value is an object without content. Its author may mean the default, and Envoy reads 0.
func (r *reader) saysNothing(n *syntax.JSONNode) bool {
	return r.kind(n) == '{' && !slices.ContainsFunc(n.Children, func(c syntax.JSONNode) bool { return r.kind(&c) != 'n' })
}

// withoutBrackets reports a value that stands for a list with this one element.
func (r *reader) withoutBrackets(n *syntax.JSONNode, p place) {
	f := r.explain(p, false, r.unexpected(n))
	if e, ok := r.v.doc.Listed(steps(r.v.path.Join(p.path))); ok && !f.Sensitive {
		f.Fixes = []diag.Fix{{Title: "make a list of " + p.written, Safe: !r.saysNothing(n), Edits: []diag.Edit{e}}}
	}
	r.d.report(leniently(diag.List{f})[0])
}

// ambiguous reports a value that Envoy's parser reads in another way than people expect. The value is lost.
func (r *reader) ambiguous(p place, reason string, taken jsontext.Value) bool {
	f := r.explain(p, false, reason)
	f.Help = "write the value itself: Envoy would read " + r.v.doc.source.Written(taken)
	r.d.report(f)
	r.lost.Add(p.path)
	return false
}
