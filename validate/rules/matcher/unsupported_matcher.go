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

	"xdspub/validate"
	"xdspub/xds"
)

var unsupportedMatcher = &validate.Rule{
	Code: "unsupported-matcher",
	Doc: `A matcher has an input or action that is not supported here.

Each place of a matcher has its inputs and its actions. Envoy refuses an input of
another place ("Didn't find a registered implementation", "Route table can only match
on request headers", "RBAC HTTP filter cannot match on"), an action of another place,
and a custom matcher that is none there. It refuses keep_matching where one action is
all that counts ("keep_matching is not supported in this context").

An input and what it is compared with must agree ("Unsupported data input type"):
HttpAttributesCelMatchInput goes with a CelMatcher and nothing else, the
RequestMatchInput of generic_proxy with its RequestMatcher, all others with strings. A
matcher_tree takes strings only.`,
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
					Path:    n.Path().Field("keep_matching"),
					Message: fmt.Sprintf("a %s can't keep matching", place.noun),
					Help:    "remove keep_matching: the first action is the only one",
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

// extensionType is empty where there is none.
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
		c.unknown("custom_match", custom, "custom matcher in a predicate", "use value_match; IPMatcher and ServerNameMatcher stand in a matcher_tree")
	case wanted != "" && input != wanted:
		c.Report(validate.Finding{
			Path:    c.Path().Field("custom_match"),
			Message: fmt.Sprintf("%s can't be compared with %s", custom.Name(), input.Name()),
			Help:    fmt.Sprintf("it goes with the input %s", wanted),
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
		c.unknown("custom_match", custom, "custom matcher of a tree in a "+c.place.noun, "use exact_match_map, prefix_match_map or a matcher_list")
	}
}

func (c matcherCheck) notAString(input protoreflect.FullName) {
	paired := c.Envoy.PairedMatcher(input)
	c.Report(validate.Finding{
		Path:    c.Path().Field("input"),
		Message: fmt.Sprintf("%s is no string, and goes with a %s only", input.Name(), paired.Name()),
		Help:    fmt.Sprintf("put it into a matcher_list, with custom_match of %s", paired),
	})
}

// input reports an input that the place does not have.
func (c matcherCheck) input(name protoreflect.FullName) (ok bool) {
	if name == "" {
		return false // it has no type
	}
	if _, everywhere := c.Envoy.ExtensionOf("envoy.matching.common_inputs", name); everywhere || slices.Contains(c.place.Inputs, name) {
		return true
	}
	c.unknown("input", name, "input of a "+c.place.noun, "it can match on "+shortNames(c.place.Inputs))
	return false
}

func (c matcherCheck) action(name protoreflect.FullName) {
	if name != "" && !slices.Contains(c.place.Actions, name) {
		c.unknown("action", name, "action of a "+c.place.noun, "it can decide "+shortNames(c.place.Actions))
	}
}

func (c matcherCheck) unknown(field string, name protoreflect.FullName, what, help string) {
	c.Report(validate.Finding{
		Path:    c.Path().Field(field),
		Message: fmt.Sprintf("%s is no %s", name, what),
		Help:    help,
	})
}

// shortNames lists types by their last names.
func shortNames(types []protoreflect.FullName) string {
	var names []string
	for _, t := range types {
		names = append(names, string(t.Name()))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
