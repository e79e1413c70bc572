// Command imports draws which package imports which (docs/imports.svg). Its tests hold that
// imports run one way: each package knows only what lies below it (docs/architecture.md).
package main

import (
	"log"
	"os"
)

//go:generate go run . ../../docs/imports.svg

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: imports FILE")
	}
	list, err := packages()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], picture(graphOf(list)), 0o644); err != nil {
		log.Fatal(err)
	}
}
