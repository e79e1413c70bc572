package lua_test

import (
	"fmt"

	"xdspub/validate/lua"
)

// LuaJIT reads what Lua 5.1 has not, such as numbers of 64 bits.
func ExampleCheck() {
	fmt.Println(lua.Check([]byte("local n = 5LL")))
	fmt.Println(lua.Check([]byte("function envoy_on_request(handle)\n  handle:logInfo('hi'\nend")))
	// Output:
	// <nil>
	// line 3: ')' expected near 'end'
}
