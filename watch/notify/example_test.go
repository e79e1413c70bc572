package notify_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"xdspub/watch/notify"
)

// A Watcher sends one signal for a burst of changes.
func Example() {
	tree, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tree)
	w, err := notify.New(context.Background(), tree, notify.Options{QuietPeriod: 50 * time.Millisecond, Rescan: -1})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	if err := os.WriteFile(filepath.Join(tree, "web.yaml"), []byte("name: web\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	fmt.Println("look again:", <-w.Signals())
	w.Read(ctx, func(notify.Changes) { // waits while git changes the tree
		text, err := os.ReadFile(filepath.Join(tree, "web.yaml"))
		fmt.Printf("%s%v\n", text, err)
	})
	cancel()
	<-ended
	// Output:
	// look again: change
	// name: web
	// <nil>
}
