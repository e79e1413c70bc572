package check

import (
	"context"
	"fmt"
	"slices"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds/variants"
)

// variantJudges judge a source tree with variants. all judges the variants themselves, and client judges the
// Snapshot of each client.
type variantJudges struct {
	all, client *validate.Judge
	last        *variants.Selection // the Selection that client judged last; nil if none
	none        *variants.Selection // the Selection of a client without parameters; nil if none
}

func newVariantJudges() *variantJudges {
	return &variantJudges{all: validate.NewJudge(rules.All), client: validate.NewJudge(rules.All)}
}

// judgeAllVariants judges the variants of all resources by the rules about variants. ok is false if a rule finds an
// error: the resources of clients are unknown then.
func (t *Tree) judgeAllVariants(ctx context.Context, tree *variants.Tree, o validate.Options, r *Result) (ok bool) {
	if t.variants == nil {
		t.variants = newVariantJudges()
	}
	o.Variants = true
	if t.options.Client != nil || t.options.Targets != nil { // only the gaps of this client, or of these targets, matter
		o.Disable = append(slices.Clone(o.Disable), codeVariantGap)
	}
	before := r.Summary.Errors
	r.Add(t.variants.all.Run(ctx, tree.All(), o))
	return r.Summary.Errors == before && ctx.Err() == nil
}

// judgeVariants judges a source tree with variants: for Rules.Client, or for all clients.
func (t *Tree) judgeVariants(ctx context.Context, tree *variants.Tree, o validate.Options, r *Result) {
	switch {
	case !t.judgeAllVariants(ctx, tree, o, r):
	case t.options.Client == nil:
		list := t.variants.judgeAll(ctx, tree, o, t.options.Path)
		if t.options.Published {
			errors := t.variants.judgePublished(ctx, tree, o, &list)
			list = append(list, errors...)
		}
		r.Add(list)
		t.variants.none = t.variants.none.Then(tree, variants.Client{})
		r.Snapshot = t.variants.none.Snapshot
	default:
		s, list := t.variants.judge(ctx, tree, *t.options.Client, o)
		if !slices.Contains(o.Disable, codeVariantGap) {
			list = append(list, missing(s, tree, "--param")...)
		}
		r.Snapshot = s.Snapshot
		r.Add(list)
	}
}

// codeVariantGap is the code of the rule about clients without a variant.
const codeVariantGap = "variant-gap"

// missing reports the resources without a variant for a client. said names, in the help, the place where the user
// wrote the client's parameters.
func missing(s *variants.Selection, tree *variants.Tree, said string) (list diag.List) {
	for _, k := range tree.Keys() {
		if s.Variant(k) != nil {
			continue
		}
		first := tree.Variants(k)[0]
		d := first.Diagnostic(codeVariantGap, "", fmt.Sprintf("no variant of %s is for a client with %s", k, s.Client.Of(k)))
		at := first.ConstraintsAt()
		d.Position, d.End = at.Position, at.End
		d.Help = "add a variant for it, or correct " + said
		list = append(list, d)
	}
	return list
}

// judgeAll judges the resources of all clients. path is the path of the source tree.
func (v *variantJudges) judgeAll(ctx context.Context, tree *variants.Tree, o validate.Options, path string) diag.List {
	o.Calls = true
	survey := newSurvey(v.client, tree)
	for {
		p, more := survey.next()
		if !more {
			break
		}
		_, list := v.judge(ctx, tree, variants.Client{Parameters: p}, o)
		if ctx.Err() != nil {
			return nil
		}
		survey.add(p, list)
	}
	list, err := survey.list()
	if err != nil {
		list = append(list, diag.Diagnostic{
			Code: codeTooManyClients.Name, Severity: codeTooManyClients.Severity, Position: diag.Position{File: path},
			Message: fmt.Sprintf("the variants were judged for %d clients, not for all: %v", len(survey.clients), err),
			Help:    "name the clients that there are by --param, or let the variants go by fewer keys",
		})
	}
	return list
}

// judgePublished returns the errors of a client without parameters, and removes them from the findings of all clients.
func (v *variantJudges) judgePublished(ctx context.Context, tree *variants.Tree, o validate.Options, all *diag.List) (errors diag.List) {
	_, list := v.judge(ctx, tree, variants.Client{}, o)
	same := make(map[diag.Position]map[string]bool) // codes of errors, by position
	for _, d := range list {
		if d.Severity == diag.Error {
			errors = append(errors, d)
			if same[d.Position] == nil {
				same[d.Position] = make(map[string]bool)
			}
			same[d.Position][d.Code] = true
		}
	}
	*all = slices.DeleteFunc(*all, func(d diag.Diagnostic) bool { return same[d.Position][d.Code] })
	return errors
}

// judge judges the resources of one client.
func (v *variantJudges) judge(ctx context.Context, tree *variants.Tree, client variants.Client, o validate.Options) (*variants.Selection, diag.List) {
	v.last = v.last.Then(tree, client)
	return v.last, v.client.Run(ctx, v.last.Snapshot, o)
}
