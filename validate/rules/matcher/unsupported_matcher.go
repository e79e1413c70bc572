package matcher

import (
	"fmt"
	"slices"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	commonmatcherv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var unsupportedMatcher = &validate.Rule{
	Code: "unsupported-matcher",
	Doc: `A matcher has an unsupported input or action at this place.

Each field that holds a matcher supports its own inputs and actions. Envoy rejects an input
of another field ("Didn't find a registered implementation", "Route table can only match on
request headers", "RBAC HTTP filter cannot match on"), an action of another field, and an
unsupported custom matcher. It rejects keep_matching in a field where only the first action
counts ("keep_matching is not supported in this context").

An input must fit its matcher ("Unsupported data input type"): HttpAttributesCelMatchInput
needs a CelMatcher, RequestMatchInput of generic_proxy needs its RequestMatcher, all other
inputs are strings. A matcher_tree supports strings only.`,
	Checks: []diag.Check{
		{Name: "action", Summary: "The action is not one of this kind of matcher."},
		{Name: "custom-match", Summary: "The custom matcher is not one of this kind of matcher."},
		{Name: "input", Summary: "The input is not one of this kind of matcher."},
		{Name: "input-and-match", Summary: "The input and the custom matcher do not fit."},
		{Name: "keep-matching", Summary: "keep_matching is not supported here."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.common.matcher.v3.Matcher.MatcherList.Predicate.SinglePredicate",
		"envoy.config.common.matcher.v3.Matcher.MatcherTree",
		"envoy.config.common.matcher.v3.Matcher.OnMatch",
		"xds.type.matcher.v3.Matcher.MatcherList.Predicate.SinglePredicate",
		"xds.type.matcher.v3.Matcher.MatcherTree",
		"xds.type.matcher.v3.Matcher.OnMatch",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		place, known := placeOfMatcher(p.Envoy, n)
		c := matcherCheck{Pass: p, Node: n, place: place}
		if !known {
			return
		}
		switch m := n.Message.(type) {
		case *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate:
			c.predicate(ofXDS(m.GetInput()), ofXDS(m.GetCustomMatch()))
		case *commonmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate:
			c.predicate(ofCore(m.GetInput()), ofCore(m.GetCustomMatch()))
		case *xdsmatcherv3.Matcher_MatcherTree:
			c.tree(ofXDS(m.GetInput()), ofXDS(m.GetCustomMatch()))
		case *commonmatcherv3.Matcher_MatcherTree:
			c.tree(ofCore(m.GetInput()), ofCore(m.GetCustomMatch()))
		case *xdsmatcherv3.Matcher_OnMatch:
			c.action(ofXDS(m.GetAction()))
			if m.GetKeepMatching() && !place.Keeps {
				p.Report(validate.Finding{
					Check:   "keep-matching",
					Path:    n.Path().Field("keep_matching"),
					Message: fmt.Sprintf("keep_matching is not supported in a %s", place.noun),
					Help:    "remove keep_matching: only the first action counts here",
				})
			}
		case *commonmatcherv3.Matcher_OnMatch:
			c.action(ofCore(m.GetAction()))
		}
	},
}

func ofXDS(c *xdscorev3.TypedExtensionConfig) protoreflect.FullName {
	return extensionType(c.GetTypedConfig())
}

func ofCore(c *corev3.TypedExtensionConfig) protoreflect.FullName {
	return extensionType(c.GetTypedConfig())
}

// extensionType returns the type of an extension, or "" for nil.
func extensionType(a *anypb.Any) protoreflect.FullName {
	if a == nil {
		return ""
	}
	return xds.PayloadType(a)
}

type matcherCheck struct {
	*validate.Pass
	*xds.Node
	place matcherPlace
}

func (c matcherCheck) predicate(input, custom protoreflect.FullName) {
	if !c.input(input) {
		return
	}
	_, known := c.Envoy.ExtensionOf("envoy.matching.input_matchers", custom)
	wanted, paired := c.Envoy.PairedInput(custom), c.Envoy.PairedMatcher(input)
	switch {
	case custom != "" && !known:
		c.unknown("custom-match", "custom_match", custom, "a custom matcher "+
			"for a predicate", "use value_match; IPMatcher and ServerNameMatcher belong in a matcher_tree")
	case wanted != "" && input != wanted:
		c.Report(validate.Finding{
			Check:   "input-and-match",
			Path:    c.Path().Field("custom_match"),
			Message: fmt.Sprintf("%s does not support the input %s", custom.Name(), input.Name()),
			Help:    fmt.Sprintf("use the input %s", wanted),
		})
	case paired != "" && custom != paired:
		c.notAString(input)
	}
}

func (c matcherCheck) tree(input, custom protoreflect.FullName) {
	if !c.input(input) {
		return
	}
	switch {
	case c.Envoy.PairedMatcher(input) != "":
		c.notAString(input)
	case custom != "" && !slices.Contains(c.place.Trees, custom):
		c.unknown("custom-match", "custom_match", custom, "a custom matcher for "+
			"a tree in a "+c.place.noun, "use exact_match_map, prefix_match_map or a matcher_list")
	}
}

func (c matcherCheck) notAString(input protoreflect.FullName) {
	paired := c.Envoy.PairedMatcher(input)
	c.Report(validate.Finding{
		Check:   "input-and-match",
		Path:    c.Path().Field("input"),
		Message: fmt.Sprintf("the input %s is not a string: it needs a %s", input.Name(), paired.Name()),
		Help:    fmt.Sprintf("move it to a matcher_list with a custom_match of type %s", paired),
	})
}

// input returns true if Envoy accepts an input in the field, and reports the input otherwise. An input without a
// type is not reported.
func (c matcherCheck) input(name protoreflect.FullName) (ok bool) {
	if name == "" {
		return false // the input has no type
	}
	if _, everywhere := c.Envoy.ExtensionOf("envoy.matching.common_inputs", name); everywhere || slices.Contains(c.place.Inputs, name) {
		return true
	}
	c.unknown("input", "input", name, "an input of a "+c.place.noun, "use one of "+shortNames(c.place.Inputs))
	return false
}

func (c matcherCheck) action(name protoreflect.FullName) {
	if name != "" && !slices.Contains(c.place.Actions, name) {
		c.unknown("action", "action", name, "an action of a "+c.place.noun, "use one of "+shortNames(c.place.Actions))
	}
}

func (c matcherCheck) unknown(check validate.CheckName, field string, name protoreflect.FullName, what, help string) {
	c.Report(validate.Finding{
		Check:   check,
		Path:    c.Path().Field(field),
		Message: fmt.Sprintf("%s is not %s", name, what),
		Help:    help,
	})
}

// shortNames returns the last parts of the names of types.
func shortNames(types []protoreflect.FullName) string {
	var names []string
	for _, t := range types {
		names = append(names, string(t.Name()))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
