package lua_test

import (
	"fmt"

	"xdspub/validate/lua"
)

// LuaJIT reads more than Lua 5.1, such as 64-bit numbers.
func ExampleCheck() {
	fmt.Println(lua.Check([]byte("local n = 5LL")))
	fmt.Println(lua.Check([]byte("function envoy_on_request(handle)\n  handle:logInfo('hi'\nend")))
	// Output:
	// <nil>
	// line 3: ')' expected near 'end'
}
