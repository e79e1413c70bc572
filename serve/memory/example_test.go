package memory_test

import (
	"fmt"
	"strings"

	"xdspub/serve/memory"
)

// A stream may hold an eighth of the memory of all clients.
func Example() {
	budget := memory.New(24<<20, memory.Options{})
	connection := budget.Connect(memory.Anonymous, "192.0.2.1", func(*memory.Refusal) { fmt.Println("close the connection") })
	defer connection.Close()
	stream := connection.Open()
	defer stream.Close()
	fmt.Println(stream.Take(1 << 20))
	err := stream.Take(2 << 20)
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))
	// Output:
	// <nil>
	// no memory is left for this: this stream has 1.5 MiB of 3.0 MiB, and needs 3.0 MiB more;
	// request less, or raise --max-client-memory of the server (now 24 MiB)
}
