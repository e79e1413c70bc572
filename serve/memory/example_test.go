package memory_test

import (
	"fmt"

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
	fmt.Println(stream.Take(2 << 20))
	// Output:
	// <nil>
	// no memory is left for this: this stream has 1.5 MiB of 3.0 MiB, and asks for 3.0 MiB; ask for less, or raise --max-client-memory of the server (now 24 MiB)
}
