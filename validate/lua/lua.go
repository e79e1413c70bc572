// Package lua judges the syntax of a Lua script as the LuaJIT in Envoy does: Lua 5.1 with goto, labels, empty
// statements and a break anywhere (5.2), and LuaJIT's own numbers such as 0x1p4, 5LL and 3i. Package lua does
// not run the script, and does not count local variables (LuaJIT allows 200) or upvalues (60).
//
//	if err := lua.Check(script); err != nil {
//		// LuaJIT does not compile the script
//	}
package lua

import (
	"bytes"
	"fmt"
)

// Check returns the first syntax error of a script. It returns nil if LuaJIT compiles the script, and for bytecode,
// which it does not judge. It also returns nil for a script that may nest too deep to judge.
func Check(script []byte) error {
	_, err := Modules(script)
	return err
}

// Modules returns the names of the modules that a script requires by a literal, as in require("lib.x"), in the
// order of the text. It returns the error that Check returns.
func Modules(script []byte) (names []string, err error) {
	script = bytes.TrimPrefix(script, []byte("\xef\xbb\xbf"))
	if len(script) > 0 && script[0] == '\x1b' {
		return nil, nil
	}
	defer func() {
		switch e := recover().(type) {
		case nil, tooDeep:
		case *Error:
			err = e
		default:
			panic(e)
		}
	}()
	p := parser{scanner: scanner{src: script, line: 1}}
	if len(script) > 0 && script[0] == '#' {
		p.skipLine()
	}
	p.next()
	p.function(true, func() {
		p.block()
		p.expect(eof)
	})
	return p.modules, nil
}

// Error is a syntax error of a script.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// tooDeep is the panic for a script that may nest deeper than LuaJIT's limit, or than the stack of this program
// allows.
type tooDeep struct{}

const maxDepth = 150

// parser parses the tokens by recursive descent. A syntax error is a panic with an *Error.
type parser struct {
	scanner
	depth   int
	fn      *function
	modules []string
}

// function is the state of the innermost function body.
type function struct {
	vararg bool
	loops  int
	blocks []*block
}

// block is a scope of labels. A goto needs a label in its own block or in an enclosing block of the same function.
type block struct {
	labels map[string]bool
	gotos  []jump
}

type jump struct {
	label string
	line  int
}

func (p *parser) fail(format string, args ...any) {
	panic(&Error{Line: p.line, Message: fmt.Sprintf(format, args...) + fmt.Sprintf(" near '%s'", p.token)})
}

func (p *parser) accept(t string) bool {
	if p.kind == symbol && p.token == t {
		p.next()
		return true
	}
	return false
}

func (p *parser) at(tokens ...string) bool {
	for _, t := range tokens {
		if p.kind == symbol && p.token == t {
			return true
		}
	}
	return false
}

func (p *parser) expect(t string) {
	if t == eof && p.kind == end {
		return
	}
	if !p.accept(t) {
		p.fail("'%s' expected", t)
	}
}

func (p *parser) name() string {
	if p.kind != name {
		p.fail("'<name>' expected")
	}
	n := p.token
	p.next()
	return n
}

// deeper calls f, and counts the depth of such calls. It panics with tooDeep at the limit.
func (p *parser) deeper(f func()) {
	if p.depth++; p.depth > maxDepth {
		panic(tooDeep{})
	}
	f()
	p.depth--
}

func (p *parser) function(vararg bool, body func()) {
	outer := p.fn
	p.fn = &function{vararg: vararg}
	body()
	p.fn = outer
}

func (p *parser) block() {
	b := &block{labels: make(map[string]bool)}
	fn := p.fn
	fn.blocks = append(fn.blocks, b)
	p.deeper(func() {
		for p.kind != end && !p.at("end", "else", "elseif", "until") {
			if p.accept("return") {
				if p.kind != end && !p.at("end", "else", "elseif", "until", ";") {
					p.expressions()
				}
				p.accept(";")
				break
			}
			p.statement()
		}
	})
	fn.blocks = fn.blocks[:len(fn.blocks)-1]
	for _, g := range b.gotos {
		switch {
		case b.labels[g.label]:
		case len(fn.blocks) > 0:
			around := fn.blocks[len(fn.blocks)-1]
			around.gotos = append(around.gotos, g)
		default:
			panic(&Error{Line: g.line, Message: fmt.Sprintf("undefined label '%s'", g.label)})
		}
	}
}

func (p *parser) loop() {
	p.fn.loops++
	p.block()
	p.fn.loops--
}

func (p *parser) statement() {
	switch {
	case p.accept(";"):
	case p.accept("if"):
		p.ifElse()
	case p.accept("while"):
		p.condition("do")
		p.loop()
		p.expect("end")
	case p.accept("do"):
		p.block()
		p.expect("end")
	case p.accept("for"):
		p.forLoop()
	case p.accept("repeat"):
		p.loop()
		p.expect("until")
		p.expression()
	case p.accept("function"):
		p.namedFunction()
	case p.accept("local"):
		p.local()
	case p.accept("::"):
		p.label()
	case p.accept("break"):
		if p.fn.loops == 0 {
			panic(&Error{Line: p.line, Message: "no loop to break"})
		}
	case p.accept("goto"):
		b := p.fn.blocks[len(p.fn.blocks)-1]
		b.gotos = append(b.gotos, jump{p.token, p.line})
		p.name()
	default:
		p.assignmentOrCall()
	}
}

func (p *parser) ifElse() {
	p.condition("then")
	p.block()
	for p.accept("elseif") {
		p.condition("then")
		p.block()
	}
	if p.accept("else") {
		p.block()
	}
	p.expect("end")
}

func (p *parser) namedFunction() {
	p.name()
	for p.accept(".") {
		p.name()
	}
	if p.accept(":") {
		p.name()
	}
	p.body()
}

func (p *parser) local() {
	if p.accept("function") {
		p.name()
		p.body()
		return
	}
	p.names()
	if p.accept("=") {
		p.expressions()
	}
}

func (p *parser) label() {
	b := p.fn.blocks[len(p.fn.blocks)-1]
	if b.labels[p.token] {
		p.fail("duplicate label '%s'", p.token)
	}
	b.labels[p.name()] = true
	p.expect("::")
}

func (p *parser) condition(then string) {
	p.expression()
	p.expect(then)
}

func (p *parser) names() {
	p.name()
	for p.accept(",") {
		p.name()
	}
}

func (p *parser) forLoop() {
	p.name()
	switch {
	case p.accept("="):
		p.expression()
		p.expect(",")
		p.expression()
		if p.accept(",") {
			p.expression()
		}
	case p.at(",", "in"):
		for p.accept(",") {
			p.name()
		}
		p.expect("in")
		p.expressions()
	default:
		p.fail("'=' or 'in' expected")
	}
	p.expect("do")
	p.loop()
	p.expect("end")
}

func (p *parser) assignmentOrCall() {
	kind := p.suffixed()
	if kind == call {
		return
	}
	for kind == variable && p.accept(",") {
		kind = p.suffixed()
	}
	if kind != variable {
		p.fail("syntax error")
	}
	p.expect("=")
	p.expressions()
}
