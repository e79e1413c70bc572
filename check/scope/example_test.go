package scope_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/check/scope"
	"xdspub/source/settingsfile"
)

// A file is judged as part of the tree that has the settings.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "clusters.yaml")
	for _, path := range []string{settingsfile.PathIn(dir), file} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			log.Print(err)
			return
		}
	}
	for _, tree := range scope.Trees([]string{file}, func(string) bool { return false }) {
		fmt.Println(tree.Path == dir, tree.Named[0] == file)
	}
	// Output: true true
}
