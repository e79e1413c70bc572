package decode

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"xdspub/diag"
	"xdspub/internal/parallel"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// decoder collects what one file holds.
type decoder struct {
	file  *File
	named Files // the files that resources name; nil leaves these files alone
	any   bool  // a document was met
	// lost is what the resources of a text proto lack, by their paths.
	lost map[xds.Path]xds.Lost
}

func (d *decoder) report(list ...diag.Diagnostic) { d.file.Findings.Add(list...) }

// enough reports whether the decoder should stop: the file has too many errors, or ctx has ended. Call enough
// only if more remains to be read.
func (d *decoder) enough() bool {
	if d.file.Findings.HasRoom(diag.Error) && !d.ended() {
		return false
	}
	d.file.giveUp()
	return true
}

// ended reports whether nobody waits for the result any more.
func (d *decoder) ended() bool { return d.named != nil && d.named.Ended() }

// lose is report for an unreadable resource, or an unreadable part that may be a resource.
func (d *decoder) lose(f diag.Diagnostic) {
	d.report(f)
	d.file.Partial = true
}

// unreadable records an unreadable document. The document may hold resources if Envoy itself reads its file,
// or if its text resembles Envoy's; templates and files of other programs hold none.
func (d *decoder) unreadable() {
	d.file.Partial = d.file.Partial || d.file.Source.byEnvoy || envoyText.Match(d.file.Source.Data())
}

// envoyText matches a text that holds a bootstrap or resources.
var envoyText = regexp.MustCompile(`(?m)^\s*["']?(?:static_resources|dynamic_resources|staticResources|dynamicResources)["']?\s*:|type\.googleapis\.com/envoy\.`)

// each calls f for 0 … n-1, each with a decoder of its own if there are several, side by side,
// and takes their results over in order.
func (d *decoder) each(n int, f func(one *decoder, i int)) {
	const batch = 64
	if n == 1 {
		if !d.enough() {
			f(d, 0)
		}
		return
	}
	d.takeOver(d.inParts((n+batch-1)/batch, func(one *decoder, p int) {
		for i := p * batch; i < min(n, (p+1)*batch) && !one.enough(); i++ {
			f(one, i)
		}
	}))
}

// inParts calls f for 0 … n-1, each with a decoder of its own, side by side, and returns
// what they have found, in order, up to where there are too many errors.
func (d *decoder) inParts(n int, f func(one *decoder, p int)) []*File {
	parts := make([]*File, n)
	count := parallel.Run(n, syntax.MaxFindings, func(p int) (errors int) {
		parts[p] = NewFile(d.file.Source)
		f(&decoder{file: parts[p], named: d.named, lost: d.lost}, p)
		return parts[p].Diagnostics().Count(diag.Error)
	})
	if count < n {
		parts[count-1].giveUp()
	}
	return parts[:count]
}

// takeOver takes over what several decoders have found, in order.
func (d *decoder) takeOver(parts []*File) {
	for _, p := range parts {
		d.file.Resources = append(d.file.Resources, p.Resources...)
		d.file.Findings.Take(&p.Findings)
		d.file.Inlined = append(d.file.Inlined, p.Inlined...)
		d.file.Partial = d.file.Partial || p.Partial
		d.file.joined += p.joined
	}
}

// value is a JSON value of a document, with its path in the source.
type value struct {
	doc  *document
	text []byte
	path xds.Path
	as   *subject
}

// subject is the resource that a value is decoded as.
type subject struct {
	t    *xds.Type // nil for none
	text []byte
	name func() string // made when asked for
}

func (s *subject) resource() diag.Resource {
	if s == nil || s.t == nil {
		return diag.Resource{}
	}
	if s.name == nil {
		s.name = sync.OnceValue(func() string { return nameIn(s.text, s.t) })
	}
	return diag.Resource{Type: s.t.URL(), Name: s.name()}
}

func (v value) at(path xds.Path, text []byte) value { return value{doc: v.doc, text: text, path: path} }

func (v value) origin() origin { return origin{v.doc.source, v.doc.Index, v.path} }

func (v value) field(name string, text []byte) value {
	return v.at(v.path.Field(name), text)
}

func (v value) finding(code diag.Code, message, help string) diag.Diagnostic {
	f := v.doc.source.Finding(code, v.doc.RangeOf(steps(v.path), false), message, help)
	f.Path = string(v.path)
	f.Sensitive = slices.ContainsFunc(steps(v.path), v.doc.source.MayBeSecret)
	return f
}

// nameIn is the name of a resource that could not be decoded.
func nameIn(text []byte, t *xds.Type) string {
	var name string
	members, _ := syntax.ObjectOf(text)
	for key, raw := range members {
		if syntax.SameField(key, string(t.Name)) && json.Unmarshal(raw, &name) != nil {
			return ""
		}
	}
	return name
}

func has(members map[string]json.RawMessage, name string) bool {
	_, ok := members[name]
	return ok
}

// urlIn returns the @type of an object; "" unless the @type is a text.
func urlIn(members map[string]json.RawMessage) string {
	if !syntax.BeginsWith(members["@type"], '"') {
		return ""
	}
	return syntax.StringOf(members["@type"])
}

// without is the JSON of members without some.
func without(members map[string]json.RawMessage, names ...string) []byte {
	rest := make(map[string]json.RawMessage, len(members))
	for k, raw := range members {
		if !slices.Contains(names, k) {
			rest[k] = raw
		}
	}
	text, _ := json.Marshal(rest) // raw values that were parsed before: can't fail
	return text
}
