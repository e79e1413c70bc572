package settingsfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds/params"
)

// When is the key of the rules that say which clients a folder's files are for. In a folder below the root no
// other key is allowed.
const When = "when"

// whenRule holds the constraints on the clients of some files.
type whenRule struct {
	params.Constraints
	// at is the position of the rule.
	at diag.Range
	// files are glob patterns of the rule's files; nil for all files in the folder and below.
	files []filePattern
}

// filePattern is a glob pattern of files in a whenRule.
type filePattern struct {
	pattern string
	at      diag.Range
}

const (
	whenForms  = "a value is a text, a list of texts, exists, absent, or {not: …} of these"
	whenIsFor  = "when has the parameters of the clients, such as {env: prod}, or a list such as [{files: canary-*.yaml, params: {canary: exists}}]"
	onlyWhen   = "the settings file of a folder below the root holds nothing but when"
	whenInRoot = "move it to the xdspub.yaml at the root of the source tree"
)

// Folder holds the rules in the settings file of a folder.
type Folder struct {
	Text  *syntax.Text
	rules []whenRule
}

// ReadFolder reads the rules about clients from the text of a settings file, and ignores other settings at
// the root. After a fault ok is false. f is nil if the file can't be read at all, or is the empty settings file of the
// root.
func ReadFolder(s *syntax.Text, isRoot bool, report func(...diag.Diagnostic)) (f *Folder, ok bool) {
	doc, members, ok := settingsDocument(s, report)
	if !ok {
		return nil, false
	}
	if isRoot && isEmpty(s, members) {
		report(empty(s))
		return nil, false
	}
	f = &Folder{Text: s}
	w := whenReader{report: report, doc: doc}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if at := []string{name}; name != When && !isRoot {
			w.unknown(at, fmt.Sprintf("%s, and here is %s", onlyWhen, written(doc, at, true, name)), whenInRoot, When)
		}
	}
	if raw, ok := members[When]; ok {
		f.rules = w.rules(raw)
	} else if !isRoot && !w.wrong { // a half-written file; its files are not for every client
		w.wrong = true
		report(s.Finding(CodeInvalidWhen, s.Point(0), "the settings file of a folder below the root says nothing",
			"write when with the parameters of the clients, such as when: {env: prod}, or delete the file"))
	}
	return f, !w.wrong
}

// written returns a key or a value as in the source, for example yes for true.
func written(doc *syntax.Document, tokens []string, key bool, means string) string {
	if l, ok := doc.LiteralAt(tokens, key); ok {
		means = string(doc.Text[l.From:l.To])
	}
	return syntax.Shorten(means)
}

// whenReader reads the value of when.
type whenReader struct {
	report func(...diag.Diagnostic)
	doc    *syntax.Document
	wrong  bool // fail or correct was called
}

// fail reports a fault in the value at a path, or in the key if key is set.
func (w *whenReader) fail(tokens []string, key bool, message, help string) {
	w.correct(tokens, key, message, help, diag.Correction{})
}

func (w *whenReader) correct(tokens []string, key bool, message, help string, c diag.Correction) {
	w.wrong = true
	f := w.doc.Finding(CodeInvalidWhen, w.doc.RangeOf(tokens, key), message, help)
	w.doc.Fix(&f, tokens, key, c)
	w.report(f)
}

// unknown reports a key that is missing from names.
func (w *whenReader) unknown(at []string, message, help string, names ...string) {
	c, candidates := diag.Correction{Wrong: at[len(at)-1]}, diag.NewCandidates(names)
	if c.Right = candidates.Nearest(c.Wrong); c.Right != "" {
		c.Sure = candidates.Misspelt(c.Wrong, c.Right, nil)
		help = fmt.Sprintf("did you mean %s?", c.Right)
	}
	w.correct(at, true, message, help, c)
}

// rules reads both forms of when: constraints for all files, or a list of files with constraints.
func (w *whenReader) rules(raw json.RawMessage) (rules []whenRule) {
	at := []string{When}
	switch jsontext.Value(raw).Kind() {
	case '{':
		if c, ok := w.constraints(at, raw); ok {
			rules = append(rules, whenRule{Constraints: c, at: w.doc.RangeOf(at, true)})
		}
	case '[':
		items, _ := syntax.ListOf(raw)
		if len(items) == 0 {
			w.fail(at, true, "when is an empty list, which says nothing", "remove it, or list files and the parameters of their clients")
		}
		for i, item := range items {
			if r, ok := w.some(w.element(at, i), item); ok {
				rules = append(rules, r)
			}
		}
	default:
		w.fail(at, true, "when is "+syntax.KindOfJSON(raw), whenIsFor)
	}
	return rules
}

func (w *whenReader) element(tokens []string, i int) []string {
	return append(slices.Clip(tokens), fmt.Sprint(i))
}

// some reads an element of the list: files with constraints.
func (w *whenReader) some(at []string, raw json.RawMessage) (r whenRule, ok bool) {
	if !syntax.BeginsWith(raw, '{') {
		w.fail(at, false, "an element of when has files and params, and this is "+syntax.KindOfJSON(raw), whenIsFor)
		return r, false
	}
	members, _ := syntax.ObjectOf(raw)
	ok = true
	for _, name := range slices.Sorted(maps.Keys(members)) {
		part := append(slices.Clip(at), name)
		is := true
		switch name {
		case "files":
			r.files, is = w.patterns(part, members[name])
		case "params":
			r.at = w.doc.RangeOf(part, true)
			r.Constraints, is = w.object(part, members[name])
		default:
			is = false
			w.unknown(part, fmt.Sprintf("an element of when has no %q", syntax.Shorten(name)), "an element of when has files and params", "files", "params")
		}
		ok = ok && is
	}
	for _, name := range []string{"files", "params"} {
		if _, has := members[name]; !has && ok {
			w.fail(at, false, "an element of when needs "+name, whenIsFor)
			ok = false
		}
	}
	return r, ok
}

// patterns reads the glob patterns of files.
func (w *whenReader) patterns(at []string, raw json.RawMessage) (patterns []filePattern, ok bool) {
	items, isList := syntax.ListOf(raw)
	if !isList {
		items = []json.RawMessage{raw}
	}
	if len(items) == 0 {
		w.fail(at, true, "files is a glob pattern, or a list of them", "")
		return nil, false
	}
	for i, item := range items {
		part := at
		if isList {
			part = w.element(at, i)
		}
		if !syntax.BeginsWith(item, '"') {
			w.fail(part, !isList, "files is a glob pattern, or a list of them, and this is "+syntax.KindOfJSON(item), "")
			return nil, false
		}
		pattern := syntax.StringOf(item)
		if wrong := wrongPattern(pattern); wrong != "" {
			w.fail(part, false, fmt.Sprintf("invalid files %q: %s", syntax.Shorten(pattern), wrong), "")
			return nil, false
		}
		patterns = append(patterns, filePattern{pattern, w.doc.RangeOf(part, false)})
	}
	return patterns, true
}

// wrongPattern returns why a glob pattern matches nothing; "" for a valid pattern.
func wrongPattern(pattern string) string {
	below := strings.Trim(pattern, "/") // Matches trims slashes too
	_, err := path.Match(below, "")
	switch {
	case err != nil || below == "":
		return "write a glob pattern such as canary.yaml or canary/*"
	case path.Clean(below) != below || below == ".." || strings.HasPrefix(below, "../"):
		return "it matches nothing, since it is compared with paths below the folder of the settings file, which have no . and no .."
	}
	return ""
}

// object is constraints for a value that may not be an object.
func (w *whenReader) object(at []string, raw json.RawMessage) (params.Constraints, bool) {
	if !syntax.BeginsWith(raw, '{') {
		w.fail(at, true, "params has the parameters of the clients, such as {env: prod}, and this is "+syntax.KindOfJSON(raw), "")
		return params.Constraints{}, false
	}
	return w.constraints(at, raw)
}

// constraints reads a mapping from keys to their constraints.
func (w *whenReader) constraints(at []string, raw json.RawMessage) (c params.Constraints, ok bool) {
	members, _ := syntax.ObjectOf(raw)
	if len(members) == 0 {
		w.fail(at, true, at[len(at)-1]+" is empty, which says nothing", "remove it, or write the parameters of the clients, such as {env: prod}")
		return c, false
	}
	ok = true
	var all []params.Constraints
	for _, key := range slices.Sorted(maps.Keys(members)) {
		part := append(slices.Clip(at), key)
		if err := params.CheckKey(key); err != nil {
			w.fail(part, true, err.Error(), "")
			ok = false
			continue
		}
		c, is := w.form(key, part, members[key])
		all, ok = append(all, c), ok && is
	}
	c = params.And(all...)
	if err := c.Check(); err != nil && ok {
		w.fail(at, true, err.Error(), "")
		ok = false
	}
	return c, ok
}

// form reads the constraint of a key.
func (w *whenReader) form(key string, at []string, raw json.RawMessage) (c params.Constraints, ok bool) {
	if !syntax.BeginsWith(raw, '{') {
		return w.value(key, at, raw)
	}
	members, _ := syntax.ObjectOf(raw)
	if len(members) == 0 {
		w.fail(at, true, fmt.Sprintf("the value of %q is an empty mapping", key), whenForms)
		return c, false
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "not" {
			w.unknown(append(slices.Clip(at), name), fmt.Sprintf("the value of %q has no form %q", key, syntax.Shorten(name)), whenForms, "not")
			return c, false
		}
	}
	c, ok = w.value(key, append(slices.Clip(at), "not"), members["not"])
	return params.Not(c), ok
}

// value reads a text, or a list of alternative texts.
func (w *whenReader) value(key string, at []string, raw json.RawMessage) (c params.Constraints, ok bool) {
	if text := syntax.StringOf(raw); syntax.BeginsWith(raw, '"') && text == "exists" {
		return params.Exists(key), true
	} else if syntax.BeginsWith(raw, '"') && text == "absent" {
		return params.Not(params.Exists(key)), true
	}
	items, isList := syntax.ListOf(raw)
	if !isList || syntax.IsNullText(raw) {
		return w.text(key, at, raw)
	}
	if len(items) == 0 {
		w.fail(at, true, fmt.Sprintf("the list of values of %q is empty: no client has one of them", key), whenForms)
		return c, false
	}
	var any []params.Constraints
	ok = true
	for i, item := range items {
		c, is := w.text(key, w.element(at, i), item)
		any, ok = append(any, c), ok && is
	}
	return params.Or(any...), ok
}

// text reads one value of a key.
func (w *whenReader) text(key string, at []string, raw json.RawMessage) (c params.Constraints, ok bool) {
	switch jsontext.Value(raw).Kind() {
	case '"':
		is := syntax.StringOf(raw)
		if err := params.CheckValue(is); err != nil {
			w.fail(at, false, err.Error(), "")
			return c, false
		}
		return params.Value(key, is), true
	case '0', 't', 'f':
		written := written(w.doc, at, false, string(raw))
		quoted := diag.Correction{Wrong: written, Right: written, Sure: written == string(raw)} // YAML reads 1.10 as 1.1
		w.correct(at, false, fmt.Sprintf("a value of %q is %s, and parameters are text", key, syntax.KindOfJSON(raw)), quoted.Question(), quoted)
	case 'n':
		w.fail(at, true, fmt.Sprintf("%q has no value", key), whenForms)
	default:
		w.fail(at, false, fmt.Sprintf("a value of %q is %s", key, syntax.KindOfJSON(raw)), whenForms)
	}
	return c, false
}

// CodeInvalidWhen is the code of findings about the clients of files.
var CodeInvalidWhen = diag.Code{Name: "invalid-when", Doc: `The xdspub.yaml of a folder has a when that means no clients, or another key.

when has keys of dynamic parameters; a value is a text, a list of texts, exists, absent, or {not: …} of
these. Numbers and booleans need quotes, and each pattern of files matches a resource file. An
xdspub.yaml below the root of the source tree holds a when and nothing else: one that is empty may be half
written, and does not mean every client. While the clients of some files are not known, no rule judges
the tree.`}
