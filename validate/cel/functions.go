package cel

import (
	"fmt"
	"slices"
	"strings"

	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"xdspub/validate/re2"
)

// global are the functions that are called as f(x), with how many arguments each
// takes. Operators are functions too, as CEL's abstract syntax has them.
var global = map[string][]int{
	"_?_:_": {3},
	"_&&_":  {2, 3}, "_||_": {2, 3},
	"_==_": {2}, "_!=_": {2}, "_<_": {2}, "_<=_": {2}, "_>_": {2}, "_>=_": {2},
	"_+_": {2}, "_-_": {2}, "_*_": {2}, "_/_": {2}, "_%_": {2},
	"!_": {1}, "-_": {1}, "_[_]": {2},
	"@in": {2}, "_in_": {2}, "in": {2},
	"@not_strictly_false": {1}, "__not_strictly_false__": {1},

	"size": {1}, "type": {1}, "dyn": {1},
	"int": {1}, "uint": {1}, "double": {1}, "bool": {1}, "bytes": {1}, "timestamp": {1}, "duration": {1},
	"matches": {2}, "contains": {2}, "startsWith": {2}, "endsWith": {2},
	"re.extract": {3}, "re.capture": {2}, "re.captureN": {2},
}

// member are those that are called as x.f(y), x not counted.
var member = map[string][]int{
	"_[_]": {1},
	"size": {0}, "matches": {1}, "contains": {1}, "startsWith": {1}, "endsWith": {1},
	"getFullYear": {0, 1}, "getMonth": {0, 1}, "getDate": {0, 1},
	"getDayOfMonth": {0, 1}, "getDayOfWeek": {0, 1}, "getDayOfYear": {0, 1},
	"getHours": {0, 1}, "getMinutes": {0, 1}, "getSeconds": {0, 1}, "getMilliseconds": {0, 1},
}

// With enable_string_functions there are these too.
var (
	stringGlobal = map[string][]int{"strings.quote": {1}, "strings.format": {1}}
	stringMember = map[string][]int{
		"charAt": {1}, "format": {1}, "indexOf": {1, 2}, "join": {0, 1}, "lastIndexOf": {1, 2}, "lowerAscii": {0},
		"replace": {2, 3}, "reverse": {0}, "split": {1, 2}, "substring": {1, 2}, "trim": {0}, "upperAscii": {0},
	}
)

func checkCall(c *exprpb.Expr_Call, o Options) error {
	name, args := c.GetFunction(), len(c.GetArgs())
	known := isGlobal(strings.TrimPrefix(name, "."), args, o)
	if target := c.GetTarget(); target != nil {
		// In re.extract(…), what looks like a target is part of the name.
		known = isMember(name, args, o) || isGlobal(dotted(target)+"."+name, args, o)
	}
	if !known {
		return unknownFunction(c)
	}
	return checkRegex(c)
}

func isGlobal(name string, args int, o Options) bool {
	return slices.Contains(global[name], args) ||
		o.StringConversion && name == "string" && args == 1 ||
		o.StringFunctions && slices.Contains(stringGlobal[name], args)
}

func isMember(name string, args int, o Options) bool {
	return slices.Contains(member[name], args) || o.StringFunctions && slices.Contains(stringMember[name], args)
}

func unknownFunction(c *exprpb.Expr_Call) error {
	name, args := c.GetFunction(), len(c.GetArgs())
	_, anyGlobal := global[name]
	_, anyMember := member[name]
	_, anyString := stringMember[name]
	switch {
	case anyGlobal || anyMember:
		return fmt.Errorf("%s can't be called like this, with %d arguments", name, args)
	case name == "string" && c.GetTarget() == nil:
		return fmt.Errorf("string() wants enable_string_conversion in a cel_config")
	case anyString && c.GetTarget() != nil:
		return fmt.Errorf("%s() wants enable_string_functions in a cel_config", name)
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
// it then. It is UTF-8 here, where package re2 knows Latin-1, which is the same
// only for what is ASCII.
func checkRegex(c *exprpb.Expr_Call) error {
	if c.GetFunction() != "matches" || len(c.GetArgs()) == 0 {
		return nil
	}
	pattern := c.GetArgs()[len(c.GetArgs())-1].GetConstExpr().GetStringValue()
	if strings.ContainsFunc(pattern, func(r rune) bool { return r > '\x7f' }) || strings.Contains(pattern, `\x{`) {
		return nil
	}
	program, err := re2.Compile(pattern)
	switch {
	case err != nil:
		return fmt.Errorf("the regular expression in matches(): %w", err)
	case program.Exact && program.Size > maxRegexSize:
		return fmt.Errorf("the regular expression in matches() is a program of %d instructions, and at most %d may be", program.Size, maxRegexSize)
	}
	return nil
}
