package check

import (
	"fmt"
	"slices"
	"sync/atomic"

	"xdspub/diag"
	"xdspub/source/decode"
	"xdspub/source/follow"
	"xdspub/source/syntax"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/validate/transition"
)

// ignored holds the comments that ignore findings. A comment at the end of a line ignores findings of this line. A
// comment above the first line of a resource ignores findings about the resource.
type ignored struct {
	onLine map[lineCode]*ignoring
	of     map[resourceCode]*ignoring
	all    []*ignoring // in the order of the source
}

type lineCode struct {
	file string
	line int
	code string
}

type resourceCode struct {
	file string
	diag.Resource
	code string
}

// ignoring is one code in a comment that ignores findings.
type ignoring struct {
	decode.IgnoreComment
	code string
	used atomic.Bool // atomic, because the results of several targets share the comments
}

// finding returns a finding about the comment.
func (i *ignoring) finding(code diag.Code, message, help string) diag.Diagnostic {
	return diag.Diagnostic{Code: code.Name, Severity: code.Severity, Position: i.Position, End: i.End, Message: message, Help: help, Sensitive: i.Sensitive}
}

// newIgnored returns the ignored of some comments, and the findings about faulty comments. read are the findings of
// the loader, which a comment can't ignore.
func newIgnored(comments []decode.IgnoreComment, read diag.List) (*ignored, diag.List) {
	g := &ignored{onLine: make(map[lineCode]*ignoring), of: make(map[resourceCode]*ignoring)}
	if len(comments) == 0 {
		return g, nil
	}
	found := diag.NewBounded(syntax.MaxFindings)
	rules, all := diag.Names(RuleCodes()), diag.Names(Codes())
	near := diag.NewCandidates(rules)
	for _, c := range comments {
		if c.Last {
			i := ignoring{IgnoreComment: c}
			found.Add(i.finding(codeIgnoreComment, "too many comments with xdspub:ignore: those below this one "+
				"are not read", "turn the rule off for the file: overrides: in xdspub.yaml"))
		}
		if len(c.Codes) == 0 || !c.HasReason {
			i := ignoring{IgnoreComment: c}
			found.Add(i.finding(codeIgnoreComment, "the comment ignores nothing: it lacks "+lacks(c), "write # xdspub:ignore RULE and the reason in words"))
			continue
		}
		for _, code := range c.Codes {
			i := &ignoring{IgnoreComment: c, code: code}
			if message, help := wrongCode(code, rules, all, near); message != "" {
				found.Add(i.finding(codeIgnoreComment, message, help))
				continue
			}
			g.add(i)
		}
	}
	for _, d := range read {
		if i := g.about(d); i != nil && !i.used.Swap(true) { // report each comment once
			found.Add(i.finding(codeIgnoreComment, fmt.Sprintf("this %s can't be ignored: xdspub can't read what it is about", d.Code), ""))
		}
	}
	return g, found.List(diag.Position{}, "about comments")
}

// lacks returns the missing part of a comment.
func lacks(c decode.IgnoreComment) string {
	if len(c.Codes) == 0 {
		return "a rule and a reason"
	}
	return "a reason"
}

// wrongCode returns the reason why comments can't ignore the findings of a code; message is "" if they can. rules
// are the codes whose findings comments can ignore, all are all codes.
func wrongCode(code string, rules, all []string, near *diag.Candidates) (message, help string) {
	switch {
	case slices.Contains(rules, code):
		return "", ""
	case slices.Contains(all, code):
		return fmt.Sprintf("the comment ignores nothing: findings of %s can't be ignored", code), ""
	case slices.ContainsFunc(transition.Rules, func(r *transition.Rule) bool { return r.Code == code }):
		return fmt.Sprintf("the comment ignores nothing: %s is about a change of what is published", code), "turn it off for all files: rules: in xdspub.yaml"
	}
	help = "run xdspub rules for a list"
	if meant := near.Nearest(code); meant != "" {
		help = diag.Correction{Right: meant}.Question()
	}
	return fmt.Sprintf("the comment ignores nothing: there is no rule %q", diag.ClipLine(code, 60)), help
}

// add adds one code of a comment. If two comments ignore the same code in the same place, the first counts.
func (g *ignored) add(i *ignoring) {
	g.all = append(g.all, i)
	file := i.File
	if at := (lineCode{file, i.Line, i.code}); i.Line > 0 && g.onLine[at] == nil {
		g.onLine[at] = i
	}
	if i.Resource.Type == nil {
		return
	}
	if at := (resourceCode{file, diag.Resource{Type: i.Resource.Type.URL(), Name: i.Resource.Name}, i.code}); g.of[at] == nil {
		g.of[at] = i
	}
}

// about returns the comment that ignores a finding, or nil.
func (g *ignored) about(d diag.Diagnostic) *ignoring {
	for code := range diag.Selectors(d.Code) {
		if i := g.onLine[lineCode{d.File, d.Line, code}]; i != nil {
			return i
		}
		if i := g.of[resourceCode{d.File, d.Resource, code}]; i != nil {
			return i
		}
	}
	return nil
}

// apply returns the findings of a list that no comment ignores. It does not modify the list.
func (g *ignored) apply(list diag.List) (left diag.List) {
	if len(g.all) == 0 {
		return list
	}
	for _, d := range list {
		if i := g.about(d); i != nil {
			i.used.Store(true)
		} else {
			left = append(left, d)
		}
	}
	return left
}

// unused reports comments that ignore no finding although the rule ran.
func (g *ignored) unused(o validate.Options) (list diag.List) {
	if len(g.all) == 0 || slices.Contains(o.Disable, codeUnusedIgnore.Name) {
		return nil
	}
	ran := make(map[string]bool)
	for _, code := range o.Listed(rules.All) {
		ran[code] = true
	}
	for _, c := range follow.Codes {
		ran[c.Name] = o.Bootstrap != nil && !slices.Contains(o.Disable, c.Name)
	}
	found := diag.NewBounded(syntax.MaxFindings)
	for _, i := range g.all {
		if !i.used.Load() && ran[i.code] {
			found.Add(i.finding(codeUnusedIgnore, fmt.Sprintf("there is no finding of %s for this comment to ignore", i.code), i.place()))
		}
	}
	return found.List(diag.Position{}, "about comments")
}

// place returns the help for a comment that ignores no finding.
func (i *ignoring) place() string {
	switch {
	case i.Line == 0:
		return "nothing stands below it; remove it, or move it"
	case i.Resource.Type != nil:
		return fmt.Sprintf("it is about %s; remove it, or correct the rule", i.Resource)
	}
	return fmt.Sprintf("it is about line %d; remove it, or put it on the line of the finding, or above the first line of a resource", i.Line)
}
