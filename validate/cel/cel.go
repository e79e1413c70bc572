// Package cel reports whether Envoy accepts a CEL expression when Envoy loads the configuration. The value of
// an expression is known at run time only, and package cel does not judge values.
//
//	err := cel.Check(`request.headers["x"].startsWith("a")`, cel.Options{Functions: functions})
//
// The parser is cel.dev/cel-go's, limited to Envoy's depth of 32. functions.go holds Envoy's further limits:
// no comprehensions, and only the functions that the caller passes. testdata/envoy.txt records the verdicts of
// Envoy 1.40.0 on a list of expressions.
package cel

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/parser"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
)

// Options describe the CEL of a release of Envoy, with the extensions that a CelExpressionConfig enables.
type Options struct {
	// Functions are the functions of the release.
	Functions Functions
	// StringConversion adds string().
	StringConversion bool
	// StringFunctions adds lowerAscii, replace, split and the like.
	StringFunctions bool
}

// maxDepth is Envoy's limit for nested expressions.
const maxDepth = 32

// newParser returns the shared parser with Envoy's settings. newQuotingParser returns one that also accepts fields
// in backquotes.
var (
	newParser        = sync.OnceValues(func() (*parser.Parser, error) { return makeParser(false) })
	newQuotingParser = sync.OnceValues(func() (*parser.Parser, error) { return makeParser(true) })
)

func makeParser(quotedFields bool) (*parser.Parser, error) {
	return parser.NewParser(
		parser.Macros(parser.AllMacros...),
		parser.MaxRecursionDepth(maxDepth+1), // cel-go counts one level of brackets more than Envoy
		parser.EnableIdentEscapeSyntax(quotedFields),
	)
}

// Check parses and checks an expression. Check returns the reason why Envoy refuses the expression, or nil.
func Check(text string, o Options) error {
	newParser := newParser
	if o.Functions.QuotedFields {
		newParser = newQuotingParser
	}
	p, err := newParser()
	if err != nil {
		return err
	}
	parsed, errs := p.Parse(common.NewTextSource(text))
	if list := errs.GetErrors(); len(list) > 0 {
		if strings.HasPrefix(list[0].Message, "invalid double literal") {
			return nil // Envoy reads 1e400 as infinity
		}
		return syntaxError(list[0])
	}
	expr, err := ast.ExprToProto(parsed.Expr())
	if err != nil {
		return err
	}
	if depth(expr) > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	return CheckExpr(expr, o)
}

// syntaxError returns the parser's message without the list of expected tokens.
func syntaxError(e *common.Error) error {
	message, _, _ := strings.Cut(e.Message, " expecting {")
	message = strings.ReplaceAll(strings.TrimPrefix(message, "Syntax error: "), "'<EOF>'", "the end")
	if e.Location.Line() != 1 || e.Location.Column() < 0 {
		return errors.New(message)
	}
	return fmt.Errorf("%s, at character %d", message, e.Location.Column()+1)
}

// CheckExpr checks a parsed expression, such as the condition of an RBAC policy. It does not check the depth.
func CheckExpr(e *exprpb.Expr, o Options) error {
	switch kind := e.GetExprKind().(type) {
	case nil:
		return errors.New("an empty expression")
	case *exprpb.Expr_ConstExpr:
		if kind.ConstExpr.GetConstantKind() == nil {
			return errors.New("a constant without a value")
		}
	case *exprpb.Expr_IdentExpr:
		if kind.IdentExpr.GetName() == "" {
			return errors.New("an identifier without a name")
		}
	case *exprpb.Expr_SelectExpr:
		switch {
		case kind.SelectExpr.GetOperand() == nil:
			return errors.New("a selection without an operand")
		case kind.SelectExpr.GetField() == "":
			return errors.New("a selection without a field")
		}
	case *exprpb.Expr_StructExpr:
		if name := kind.StructExpr.GetMessageName(); name != "" && !strings.Contains(name, ".") {
			return fmt.Errorf("unknown message %q", name)
		}
	case *exprpb.Expr_CallExpr:
		if err := checkCall(kind.CallExpr, o); err != nil {
			return err
		}
	case *exprpb.Expr_ComprehensionExpr:
		return errors.New("comprehensions (all, exists, exists_one, filter, map) are disabled")
	}
	for _, child := range children(e) {
		if err := CheckExpr(child, o); err != nil {
			return err
		}
	}
	return nil
}

// children returns the direct subexpressions of e.
func children(e *exprpb.Expr) (list []*exprpb.Expr) {
	switch kind := e.GetExprKind().(type) {
	case *exprpb.Expr_SelectExpr:
		return []*exprpb.Expr{kind.SelectExpr.GetOperand()}
	case *exprpb.Expr_ListExpr:
		return kind.ListExpr.GetElements()
	case *exprpb.Expr_StructExpr:
		for _, entry := range kind.StructExpr.GetEntries() {
			if key := entry.GetMapKey(); key != nil {
				list = append(list, key)
			}
			list = append(list, entry.GetValue())
		}
	case *exprpb.Expr_CallExpr:
		if target := kind.CallExpr.GetTarget(); target != nil {
			list = append(list, target)
		}
		list = append(list, kind.CallExpr.GetArgs()...)
	}
	return list
}

func depth(e *exprpb.Expr) int {
	deepest := 0
	for _, child := range children(e) {
		deepest = max(deepest, depth(child))
	}
	return deepest + 1
}
