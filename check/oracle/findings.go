package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/envoy/trial"
	"xdspub/xds"
)

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeRefused, codeCrashed, codeNotAsked}

var (
	codeRefused = diag.Code{Name: "envoy-refused", Doc: `Envoy refuses a resource.

With --envoy FILE that program judges the resources by envoy --mode validate, and with --envoy-mode
shadow also as it loads the files, once no rule finds an error. The message is Envoy's own. This
Envoy may know better than the rules, because it has your version and your extensions.`}

	codeCrashed = diag.Code{Name: "envoy-crashed", Doc: `Envoy dies of a resource, or does not come to an end with it.

With --envoy FILE that program judges the resources, by envoy --mode validate or as it loads the files.
An Envoy that reads this resource at work would die as well, and again at each start.`}

	codeNotAsked = diag.Code{Name: "envoy-not-asked", Severity: diag.Info, Doc: `Envoy is not asked about some resources.

With --envoy FILE that program judges the resources. envoy --mode validate can't judge resources
that Envoy gets only by a subscription, such as scoped route configurations. No mode can judge a
resource that names files which this machine lacks. It must not judge what would run code or write
files, nor what xdspub can't read and may do so. The rules have judged every resource.`}
)

// findings returns the findings of a verdict about c. c has the same identity as the judged Candidate. Its
// resources may stand at other places in the source.
func (v *verdict) findings(c Candidate) (list diag.List) {
	for _, f := range v.faults {
		r := here(c.Snapshot, f.of)
		said := words(f.answer)
		if f.name != "" { // only Envoy knows the name of the wrapper: put the resource's name there
			said = strings.ReplaceAll(said, "'"+f.name+"'", r.Key.String())
			said = strings.ReplaceAll(said, f.name, r.Name)
		}
		d := r.Diagnostic(codeRefused.Name, place(r, f.answer), "Envoy refuses the "+r.Type.Noun+": "+said)
		if f.answer.Refusal == "" {
			d.Code, d.Message = codeCrashed.Name, crashed("the "+r.Type.Noun, f.answer)
		}
		list = append(list, d)
	}
	at := diag.Position{File: c.Path}
	if !v.rest.Taken() {
		d := diag.Diagnostic{Code: codeRefused.Name, Position: at, Message: "Envoy refuses more than what is shown: " + words(v.rest)}
		switch {
		case v.rest.Refusal == "":
			d.Code, d.Message = codeCrashed.Name, crashed("the resources", v.rest)
		case len(v.faults) == 0:
			d.Message = "Envoy refuses the resources, and it is not known which: " + words(v.rest)
		}
		list = append(list, d)
	}
	return append(list, notAsked(at, v.omitted)...).Sort()
}

// here returns the resource of s that is equal to r. s is equal to the Snapshot of r.
func here(s *xds.Snapshot, r *xds.Resource) *xds.Resource {
	named := s.Named(r.Key)
	i := slices.IndexFunc(named, func(other *xds.Resource) bool { return other.DeliveredBy == r.DeliveredBy && other.Same(r) })
	if i < 0 {
		return r
	}
	return named[i]
}

func crashed(what string, a trial.Answer) string {
	if a.Hang != "" {
		return fmt.Sprintf("Envoy comes to no end with %s: %s", what, a.Hang)
	}
	return fmt.Sprintf("Envoy dies of %s: %s", what, diag.ClipLine(a.Crash, diag.MaxText))
}

// notAsked reports the resources that Envoy did not judge, with one finding for each reason.
func notAsked(at diag.Position, omitted []omission) (list diag.List) {
	reasons := make(map[string][]string)
	var order []string
	for _, o := range omitted {
		if reasons[o.why] == nil {
			order = append(order, o.why)
		}
		reasons[o.why] = append(reasons[o.why], o.of.Key.String())
	}
	for _, why := range order {
		list = append(list, diag.Diagnostic{
			Code: codeNotAsked.Name, Severity: codeNotAsked.Severity, Position: at,
			Message: fmt.Sprintf("Envoy was not asked about %s: %s", diag.Few(reasons[why], 3), why),
		})
	}
	return list
}

// The forms of Envoy's messages about a broken constraint, and about an unknown field.
var (
	constraint = regexp.MustCompile(`Proto constraint validation failed \((.*)\)`)
	link       = regexp.MustCompile(`(\w+)ValidationError\.(\w+)((?:\[[^\]]*\])?): `)
	unknown    = regexp.MustCompile(`message ([\w.]+),\s+near [^)]*\)?: no such field:\s+'([^']*)'`)
)

// words returns a short form of Envoy's message. It leaves out quotes of the resource, because they may contain a
// secret.
func words(a trial.Answer) string {
	said := strings.Join(strings.Fields(a.Refusal+a.Crash+a.Hang), " ")
	if m := constraint.FindStringSubmatch(said); m != nil {
		chain := link.FindAllStringSubmatchIndex(m[1], -1)
		if len(chain) > 0 {
			last := chain[len(chain)-1]
			return diag.ClipLine(fmt.Sprintf("%s of %s: %s", snake(m[1][last[4]:last[5]])+m[1][last[6]:last[7]],
				m[1][last[2]:last[3]], m[1][last[1]:]), diag.MaxText)
		}
	}
	if m := unknown.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("this Envoy knows no field %q of %s", diag.Clip(m[2], diag.MaxWord), m[1])
	}
	before, _, _ := strings.Cut(said, "goo.gle/debug")
	return diag.Hide(diag.ClipLine(strings.TrimSpace(before), diag.MaxText))
}

// place returns the path of the field that Envoy's message names, or "" if the message names none.
func place(r *xds.Resource, a trial.Answer) xds.Path {
	m := constraint.FindStringSubmatch(strings.Join(strings.Fields(a.Refusal), " "))
	if m == nil {
		return ""
	}
	chain := link.FindAllStringSubmatch(m[1], -1)
	for i, step := range chain {
		path, found := pathTo(r, step[1])
		if !found {
			continue
		}
		for _, step := range chain[i:] {
			path = path.Field(snake(step[2])) + xds.Path(step[3])
		}
		return path
	}
	return ""
}

// pathTo returns the path of the first message in a resource whose type has the last name name.
func pathTo(r *xds.Resource, name string) (path xds.Path, found bool) {
	xds.Walk(r.Message(), func(n *xds.Node) {
		if !found && string(n.Name().Name()) == name {
			path, found = n.Path(), true
		}
	})
	return path, found
}

// snake returns the name of a field in proto files. name is its name in C++ or Go.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
