package operator_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/operator"
)

// The second of two operators learns who has paused the directory.
func Example() {
	out, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, by := range []string{"alice@bastion", "bob@laptop"} {
		d, err := operator.Read(out)
		if err != nil {
			log.Fatal(err)
		}
		if err := d.Pause(operator.Pause{Decision: control.Decision{By: by, Reason: "incident 42", Since: since}}, false); err != nil {
			fmt.Println(err)
			continue
		}
		if err := d.Write(dir); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// paused already, by alice@bastion since 2030-01-02T03:04:05Z: incident 42
}
