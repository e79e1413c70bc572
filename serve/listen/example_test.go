package listen_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/internal/addr"
	"xdspub/serve/listen"
)

// A Unix socket is for its user and its group.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	address, err := addr.Parse("unix:" + filepath.Join(dir, "xds.sock"))
	if err != nil {
		log.Fatal(err)
	}
	l, err := listen.Listen(context.Background(), address, listen.Options{Gate: listen.NewGate(listen.GateOptions{Connections: 10_000, Rate: 1000})})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(address.Name)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Mode())
	// Output:
	// Srw-rw----
}
