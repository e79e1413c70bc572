package lua

import "regexp"

func (p *parser) expressions() {
	p.expression()
	for p.accept(",") {
		p.expression()
	}
}

var binary = []string{"+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or"}

// expression parses an expression. It ignores precedence, which has no influence on the validity.
func (p *parser) expression() {
	p.deeper(func() {
		for {
			for p.at("not", "-", "#") {
				p.next()
			}
			p.simple()
			if !p.at(binary...) {
				return
			}
			p.next()
		}
	})
}

func (p *parser) simple() {
	switch {
	case p.kind == number, p.kind == text, p.at("nil", "true", "false"):
		p.next()
	case p.at("..."):
		if !p.fn.vararg {
			p.fail("cannot use '...' outside a vararg function")
		}
		p.next()
	case p.at("{"):
		p.table()
	case p.accept("function"):
		p.body()
	default:
		p.suffixed()
	}
}

// exprKind is the kind of a suffixed expression. Only a variable can stand on the left of an assignment, and only a
// call can be a statement.
type exprKind int

const (
	value exprKind = iota
	variable
	call
)

// plainText matches the beginning of the arguments of a call, if it is a string without escapes.
var plainText = regexp.MustCompile(`^(?:\(\s*)?["']([^"'\\\n]*)["']`)

func (p *parser) suffixed() exprKind {
	kind := variable
	switch {
	case p.kind == name:
		requires := p.token == "require"
		p.next()
		if requires && p.kind != end {
			if module := plainText.FindSubmatch(p.src[p.pos-len(p.token):]); module != nil {
				p.modules = append(p.modules, string(module[1]))
			}
		}
	case p.accept("("):
		p.expression()
		p.expect(")")
		kind = value
	default:
		p.fail("unexpected symbol")
	}
	for {
		switch {
		case p.accept("."):
			p.name()
			kind = variable
		case p.accept("["):
			p.expression()
			p.expect("]")
			kind = variable
		case p.accept(":"):
			p.name()
			if !p.arguments() {
				p.fail("function arguments expected")
			}
			kind = call
		case p.arguments():
			kind = call
		default:
			return kind
		}
	}
}

func (p *parser) arguments() bool {
	switch {
	case p.kind == text:
		p.next()
	case p.at("{"):
		p.table()
	case p.accept("("):
		if !p.at(")") {
			p.expressions()
		}
		p.expect(")")
	default:
		return false
	}
	return true
}

func (p *parser) table() {
	p.expect("{")
	for !p.at("}") {
		switch {
		case p.accept("["):
			p.expression()
			p.expect("]")
			p.expect("=")
			p.expression()
		case p.kind == name && p.assignsNext():
			p.next()
			p.expect("=")
			p.expression()
		default:
			p.expression()
		}
		if !p.accept(",") && !p.accept(";") {
			break
		}
	}
	p.expect("}")
}

// body parses the parameters and the body of a function.
func (p *parser) body() {
	p.expect("(")
	vararg := false
	for !p.at(")") {
		if vararg = p.accept("..."); vararg {
			break
		}
		if p.kind != name {
			p.fail("<name> or '...' expected")
		}
		p.next()
		if !p.accept(",") {
			break
		}
		if p.at(")") {
			p.fail("<name> or '...' expected")
		}
	}
	p.expect(")")
	p.function(vararg, p.block)
	p.expect("end")
}
