package delivery

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"xdspub/tools/sh"
)

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the blocks of docs/ci.md in a language that contain a text.
func blocks(t *testing.T, language, has string) (list []string) {
	t.Helper()
	for _, m := range block.FindAllStringSubmatch(written(t, filepath.Join(root, "docs", "ci.md")), -1) {
		if m[1] == language && strings.Contains(m[2], has) {
			list = append(list, m[2])
		}
	}
	if len(list) == 0 {
		t.Fatalf("docs/ci.md has no %s with %q", language, has)
	}
	return list
}

func written(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// userRepository returns a repository of a user, with the quickstart as the tree envoy.
func userRepository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "user")
	if err := os.CopyFS(filepath.Join(dir, "envoy"), os.DirFS(filepath.Join(root, "examples", "quickstart"))); err != nil {
		t.Fatal(err)
	}
	sh.Run(t, dir, "git init --quiet --initial-branch main && git add . && git commit --quiet --message first")
	return dir
}
