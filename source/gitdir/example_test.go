package gitdir_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/source/gitdir"
)

// In a linked work tree, .git is a file that names the git directory.
func Example() {
	top, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	if err := os.WriteFile(filepath.Join(top, gitdir.Name), []byte("gitdir: /srv/repository/.git/worktrees/staging\n"), 0o600); err != nil {
		log.Print(err)
		return
	}
	dir, ok := gitdir.Of(gitdir.Enclosing(filepath.Join(top, "clusters"))[0])
	fmt.Println(dir, ok)
	// Output: /srv/repository/.git/worktrees/staging true
}
