package lua_test

import (
	"slices"
	"strings"
	"testing"

	"xdspub/validate/lua"
)

// The verdicts are those of Envoy's LuaJIT. The text after "near" is left out, because both quote strings
// differently.
func TestCheck(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{"x=1; ; y=2", ""},
		{";x=1", ""},
		{"while true do break; local x = 1 end", ""},
		{"break", "line 1: no loop to break"},
		{"do break end", "line 1: no loop to break"},
		{"goto = 1", "line 1: '<name>' expected"},
		{"goto x", "line 1: undefined label 'x'"},
		{"goto x ::x::", ""},
		{"::a:: ::a::", "line 1: duplicate label 'a'"},
		{"do ::a:: end ::a::", ""},
		{"::a:: do ::a:: end", ""},
		{"do goto a end ::a::", ""},
		{"goto a do ::a:: end", "line 1: undefined label 'a'"},
		{"local function f() return ... end", "line 1: cannot use '...' outside a vararg function"},
		{"local function f(...) return ... end", ""},
		{"return ...", ""},
		{"return 1 x=2", "line 1: '<eof>' expected"},
		{"return; x=2", "line 1: '<eof>' expected"},
		{"f\n(1)", ""},
		{`local t = {1,2;3,a=1,["b"]=2,}`, ""},
		{"local t = {,}", "line 1: unexpected symbol"},
		{"local t = {1,,2}", "line 1: unexpected symbol"},
		{"local a <const> = 1", "line 1: unexpected symbol"},
		{`local x = "\q"`, "line 1: invalid escape sequence"},
		{`local x = "\x4"`, "line 1: invalid escape sequence"},
		{`local x = "\x41\z  \u{48}\065"`, ""},
		{`local x = "\u{110000000}"`, "line 1: invalid escape sequence"},
		{`local x = "\256"`, "line 1: invalid escape sequence"},
		{`local x = "abc`, "line 1: unfinished string"},
		{"local x = [[abc", "line 1: unfinished long string"},
		{"local x = [==[a]]]==]", ""},
		{"local x = [=a", "line 1: invalid long string delimiter"},
		{"--[[ comment", "line 1: unfinished long comment"},
		{"--[==[ c ]==] local x = 1", ""},
		{"local x = 0x", "line 1: malformed number"},
		{"local x = 0xA.8p1", ""},
		{"local x = 1e", "line 1: malformed number"},
		{"local x = 1e5LL", "line 1: malformed number"},
		{"local x = 5LL", ""},
		{"local x = 0x5ull", ""},
		{"local x = 3i", ""},
		{"local x = 0b101", ""},
		{"local x = 0b102", "line 1: malformed number"},
		{"local x = 1..2", "line 1: malformed number"},
		{"local x = 1 ..2", ""},
		{"local x = 3x", "line 1: malformed number"},
		{"local x = 08", ""},
		{"local x = .5e-3", ""},
		{"local x = 5.", ""},
		{"a.b.c = 1 a.b:c(1)", ""},
		{"a.b:c = 1", "line 1: function arguments expected"},
		{"f() = 1", "line 1: unexpected symbol"},
		{"(f)() ", ""},
		{"(f).x = 1", ""},
		{"(f) = 1", "line 1: syntax error"},
		{`f{1} f"x" f[[y]]`, ""},
		{"x", "line 1: '=' expected"},
		{"x.y", "line 1: '=' expected"},
		{"1", "line 1: unexpected symbol"},
		{"local function a.b() end", "line 1: '(' expected"},
		{"function a.b.c:d() end", ""},
		{"function a:b.c() end", "line 1: '(' expected"},
		{"for i=1 do end", "line 1: ',' expected"},
		{"for i=1,2,3 do end", ""},
		{"for i=1,2,3,4 do end", "line 1: 'do' expected"},
		{"for a,b in pairs(x) do end", ""},
		{"for a.b in x do end", "line 1: '=' or 'in' expected"},
		{"for a in x, y, z do end", ""},
		{"if x then elseif y then else end", ""},
		{"if x then else elseif y then end", "line 1: 'end' expected"},
		{"repeat local x = 1 until x", ""},
		{"while x do", "line 1: 'end' expected"},
		{"end", "line 1: '<eof>' expected"},
		{"local x = function() end", ""},
		{"local x = function(a,b,...) end", ""},
		{"local x = function(...,a) end", "line 1: ')' expected"},
		{"local x = function(a,) end", "line 1: <name> or '...' expected"},
		{`local x = not not -#x ^ 2 .. "a" == 1 and 2 or 3`, ""},
		{"local x = 2 ^ -3", ""},
		{"local x = a ~= b", ""},
		{"local x = a != b", "line 1: unexpected symbol"},
		{"local x = a ~ b", "line 1: unexpected symbol"},
		{"local x = a >> b", "line 1: unexpected symbol"},
		{"local x = a // b", "line 1: unexpected symbol"},
		{"local x = @", "line 1: unexpected symbol"},
		{"local é = 1", ""},
		{"local x = y.end", "line 1: '<name>' expected"},
		{"local x = {end=1}", "line 1: unexpected symbol"},
		{"local and = 1", "line 1: '<name>' expected"},
		{"local x, y = 1, 2, 3", ""},
		{"local x =", "line 1: unexpected symbol"},
		{"local", "line 1: '<name>' expected"},
		{"local x y", "line 1: '=' expected"},
		{"x, y = 1", ""},
		{"x, f() = 1", "line 1: syntax error"},
		{"x, y += 1", "line 1: '=' expected"},
		{"local x = (1", "line 1: ')' expected"},
		{"local x = 1)", "line 1: unexpected symbol"},
		{"]]", "line 1: unexpected symbol"},
		{`local x = "a" .. `, "line 1: unexpected symbol"},
		{"function f() return end end", "line 1: '<eof>' expected"},
		{"return function() end", ""},
		{"local x = x:y", "line 1: function arguments expected"},
		{"local x = x:y()", ""},
		{`local x = ("x"):rep(3)`, ""},
		{`local x = "x":rep(3)`, "line 1: unexpected symbol"},
		{"local x = {}.a", "line 1: unexpected symbol"},
		{"local x = ({}).a", ""},
		{"local a = b ? c : d", "line 1: unexpected symbol"},
		{"local function f(self) self.x = function(a) return a end end", ""},
		{"nil = 1", "line 1: unexpected symbol"},
		{"local x = nil.y", "line 1: unexpected symbol"},
		{"true()", "line 1: unexpected symbol"},
		{"local x <close> = nil", "line 1: unexpected symbol"},
		{"goto continue; ::continue::", ""},
		{"while x do goto continue; local y; ::continue:: end", ""},
		{"for i=1,2 do local x if x then goto continue end ::continue:: end", ""},
		{"while x do if y then break end local z end", ""},
		{"while x do local f = function() break end end", "line 1: no loop to break"},
		{"return return", "line 1: unexpected symbol"},
		{"::a", "line 1: '::' expected"},
		{":: b :: x=1", ""},
		{"x = 1 -- comment", ""},
		{"x = --[[c]] 1", ""},
		{"x = [[", "line 1: unfinished long string"},
		{"f(", "line 1: unexpected symbol"},
		{"f(1,)", "line 1: unexpected symbol"},
		{"f(a b)", "line 1: ')' expected"},
		{`a[1][2].c["d"] = 1`, ""},
		{"a[] = 1", "line 1: unexpected symbol"},
		{"#x = 1", ""},
		{"x = #", "line 1: unexpected symbol"},
		{"x = - ", "line 1: unexpected symbol"},
		{"do", "line 1: 'end' expected"},
		{"do end end", "line 1: '<eof>' expected"},
		{"else", "line 1: '<eof>' expected"},
		{"until x", "line 1: '<eof>' expected"},
		{"then", "line 1: unexpected symbol"},
		{`x = "a\`, "line 1: unfinished string"},
		{`b"`, "line 1: unfinished string"},
		{`x = '\'`, "line 1: unfinished string"},
		{`x = 'it"s'`, ""},
		{"local x = 1 local y = 2 local z = x+y", ""},
		{"", ""},
	} {
		got := ""
		if err := lua.Check([]byte(test.script)); err != nil {
			got, _, _ = strings.Cut(err.Error(), " near '")
		}
		if got != test.want {
			t.Errorf("%q: %q, want %q", test.script, got, test.want)
		}
	}
}

func TestModules(t *testing.T) {
	for script, want := range map[string][]string{
		`local m = require("lib.x")`:                                     {"lib.x"},
		`local m = require 'a' local n = require( "b" )`:                 {"a", "b"},
		`function envoy_on_request(h) require("late") end`:               {"late"},
		`pcall(require, "lib.x") local r = require`:                      nil,
		`log("require(\"x\")") -- require("y")` + "\n" + `require(name)`: nil,
		`a.require("x") a:require("y")`:                                  nil,
	} {
		got, err := lua.Modules([]byte(script))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", script, got, err, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("function envoy_on_request(h) h:headers():add('a', [[b]]) end"))
	f.Fuzz(func(t *testing.T, script []byte) { _ = lua.Check(script) })
}
