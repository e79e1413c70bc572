package cel

import (
	"fmt"
	"slices"
	"strings"

	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"xdspub/validate/re2"
)

// Functions are the functions that Envoy's CEL has, by name, with how many arguments each
// takes, and its syntax.
type Functions struct {
	// Global are called as f(x), Receiver as x.f(y), x not counted.
	Global, Receiver map[string][]int
	// With enable_string_functions there are these too.
	StringGlobal, StringReceiver map[string][]int
	// QuotedFields says that a field may stand in backquotes.
	QuotedFields bool
}

// operators are functions too, as CEL's abstract syntax has them. They are the language's, not a
// version's.
var operators = map[string][]int{
	"_?_:_": {3},
	"_&&_":  {2, 3}, "_||_": {2, 3},
	"_==_": {2}, "_!=_": {2}, "_<_": {2}, "_<=_": {2}, "_>_": {2}, "_>=_": {2},
	"_+_": {2}, "_-_": {2}, "_*_": {2}, "_/_": {2}, "_%_": {2},
	"!_": {1}, "-_": {1}, "_[_]": {2},
	"@in": {2}, "_in_": {2}, "in": {2},
	"@not_strictly_false": {1}, "__not_strictly_false__": {1},
}

func checkCall(c *exprpb.Expr_Call, o Options) error {
	name, args := c.GetFunction(), len(c.GetArgs())
	known := isGlobal(strings.TrimPrefix(name, "."), args, o)
	if target := c.GetTarget(); target != nil {
		// In re.extract(…), what looks like a target is part of the name.
		known = isReceiver(name, args, o) || isGlobal(dotted(target)+"."+name, args, o)
	}
	if !known {
		return unknownFunction(c, o.Functions)
	}
	return checkRegex(c)
}

func isGlobal(name string, args int, o Options) bool {
	return slices.Contains(operators[name], args) || slices.Contains(o.Functions.Global[name], args) ||
		o.StringConversion && name == "string" && args == 1 ||
		o.StringFunctions && slices.Contains(o.Functions.StringGlobal[name], args)
}

func isReceiver(name string, args int, o Options) bool {
	return name == "_[_]" && args == 1 || slices.Contains(o.Functions.Receiver[name], args) ||
		o.StringFunctions && slices.Contains(o.Functions.StringReceiver[name], args)
}

func unknownFunction(c *exprpb.Expr_Call, known Functions) error {
	name, args := c.GetFunction(), len(c.GetArgs())
	_, anyOperator := operators[name]
	_, anyGlobal := known.Global[name]
	_, anyReceiver := known.Receiver[name]
	_, anyString := known.StringReceiver[name]
	switch {
	case anyOperator || anyGlobal || anyReceiver:
		return fmt.Errorf("%s does not accept these arguments (%d)", name, args)
	case name == "string" && c.GetTarget() == nil:
		return fmt.Errorf("string() needs enable_string_conversion in a cel_config")
	case anyString && c.GetTarget() != nil:
		return fmt.Errorf("%s() needs enable_string_functions in a cel_config", name)
	default:
		return fmt.Errorf("unknown function %q", name)
	}
}

// dotted is the name that a chain of identifiers spells, or "".
func dotted(e *exprpb.Expr) string {
	switch kind := e.GetExprKind().(type) {
	case *exprpb.Expr_IdentExpr:
		return strings.TrimPrefix(kind.IdentExpr.GetName(), ".")
	case *exprpb.Expr_SelectExpr:
		if before := dotted(kind.SelectExpr.GetOperand()); before != "" {
			return before + "." + kind.SelectExpr.GetField()
		}
	}
	return ""
}

// maxRegexSize is how large a program matches() may have.
const maxRegexSize = 100

// checkRegex checks a pattern that is written in the expression: Envoy compiles
// it then, in UTF-8.
func checkRegex(c *exprpb.Expr_Call) error {
	if c.GetFunction() != "matches" || len(c.GetArgs()) == 0 {
		return nil
	}
	pattern := c.GetArgs()[len(c.GetArgs())-1].GetConstExpr().GetStringValue()
	program, err := re2.Compile(pattern, re2.UTF8)
	switch {
	case err != nil:
		return fmt.Errorf("invalid regular expression in matches(): %w", err)
	case program.TooLarge(maxRegexSize):
		return fmt.Errorf("the regular expression in matches() has %d instructions, the limit is %d", program.Size, maxRegexSize)
	}
	return nil
}
