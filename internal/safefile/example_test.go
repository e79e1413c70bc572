package safefile_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/internal/safefile"
)

// Read reads a file that another user may have put in place. It does not wait for the writer of a pipe, and it
// reads no more than the limit.
func ExampleRead() {
	dir, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "web.yaml")
	if err := os.WriteFile(name, []byte("name: web\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	text, err := safefile.Read(name, 1<<20)
	fmt.Printf("%s%v\n", text, err)
	_, err = safefile.Read(name, 4)
	_, large := errors.AsType[*safefile.TooLargeError](err)
	fmt.Println("too large:", large)
	_, err = safefile.Read("/dev/zero", 1<<20)
	fmt.Println("not regular:", errors.Is(err, safefile.ErrNotRegular))
	// Output:
	// name: web
	// <nil>
	// too large: true
	// not regular: true
}
