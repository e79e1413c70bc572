// Command xdspub publishes a directory of Envoy resources as files that Envoy
// subscribes to, and validates it first.
package main

import "os"

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }
