package settings

import (
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
)

// Nearest returns the one of names that a word was likely meant for, or "": one that differs by
// a letter or two, in capitals or in how its parts are joined, or the only one that it begins.
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

// OneOf lists the values that are allowed instead of a given value, and says which of them the user may have meant.
func OneOf(names []string, given string) string {
	last := len(names) - 1
	all := fmt.Sprintf("use %s or %s", strings.Join(names[:last], ", "), names[last])
	if meant := Nearest(names, given); meant != "" {
		return fmt.Sprintf("did you mean %s? %s", meant, all)
	}
	return all
}
