package settings

import (
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
)

// Nearest returns the name that the writer of word probably meant; empty if no name is near. Nearest ignores
// case, and takes _ for -. If word is the beginning of exactly one name, Nearest returns that name. Otherwise
// Nearest returns a name that differs from word in a few letters (diag.Candidates).
func Nearest(names []string, word string) string {
	plain := strings.ReplaceAll(strings.ToLower(word), "_", "-")
	if slices.Contains(names, plain) {
		return plain
	}
	begun := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(plain) < 2 || !strings.HasPrefix(name, plain) })
	if len(begun) == 1 {
		return begun[0]
	}
	return diag.NewCandidates(names).Nearest(plain)
}

// OneOf returns the remedy for a value that is not one of names: all names, and the name that the user may have
// meant. names has two or more elements.
func OneOf(names []string, given string) string {
	last := len(names) - 1
	all := fmt.Sprintf("use %s or %s", strings.Join(names[:last], ", "), names[last])
	if meant := Nearest(names, given); meant != "" {
		return fmt.Sprintf("did you mean %s? %s", meant, all)
	}
	return all
}
