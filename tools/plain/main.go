// Plain finds sentences of comments and pages that have to be read twice.
//
//	go run ./tools/plain [-n 20] PATH…
//
// Plain prints the worst N sentences, then the share of such sentences among the comments and the pages.
package main

import (
	"flag"
	"fmt"
	"log"
)

func main() {
	log.SetFlags(0)
	n := flag.Int("n", 20, "print the worst N sentences")
	flag.Parse()
	var comments, pages []sentence
	for _, path := range flag.Args() {
		c, p, err := sentences(path)
		if err != nil {
			log.Fatal(err)
		}
		comments, pages = append(comments, c...), append(pages, p...)
	}
	for _, of := range []struct {
		name string
		list []sentence
	}{{"comments", comments}, {"pages", pages}} {
		found := vagueOf(of.list)
		for _, s := range found[:min(*n, len(found))] {
			fmt.Printf("%s:%d: %.0f%% %s\n", s.File, s.Line, 100*s.Share, s.Text)
		}
		if len(of.list) > 0 {
			fmt.Printf("%s: %d of %d sentences (%.1f %%)\n", of.name, len(found), len(of.list), 100*float64(len(found))/float64(len(of.list)))
		}
	}
}
