package cel

import (
	"fmt"
	"slices"
	"strings"

	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"xdspub/validate/re2"
)

// Functions lists the functions of a release of Envoy by name, with the possible numbers of arguments.
type Functions struct {
	// Global functions are called as f(x), Receiver functions as x.f(y). The count of arguments of a Receiver
	// function excludes x.
	Global, Receiver map[string][]int
	// StringGlobal and StringReceiver are the functions that enable_string_functions adds.
	StringGlobal, StringReceiver map[string][]int
	// QuotedFields means that a field may stand in backquotes.
	QuotedFields bool
}

// operators are the names of operators in CEL's syntax tree. All releases of Envoy have these operators.
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
		// The parser reads re.extract(…) as a call of extract on re, but re.extract is the name of a function.
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

// dotted returns the dotted name that an expression consists of, such as re.extract; "" for any other expression.
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

// maxRegexSize is the largest number of instructions of a regular expression in matches().
const maxRegexSize = 100

// checkRegex checks the argument of matches() if it is a literal. Envoy compiles a literal, in UTF-8, when it loads
// the expression.
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
