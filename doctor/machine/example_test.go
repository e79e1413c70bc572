package machine_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/doctor/machine"
)

// The mode of a file says whether another user may read the file.
func Example() {
	dir, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "sds.json")
	if err := os.WriteFile(file, nil, 0o640); err != nil {
		log.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		log.Fatal(err)
	}
	envoy, err := machine.UserNamed("4242:4242")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(envoy.May(info, machine.Read))
	// Output:
	// false
}
