package boring

import (
	"fmt"
	"strings"
)

// CheckNames returns what is wrong with a list of key exchange groups or of signature algorithms,
// divided by colons, and with which name. known has the names that BoringSSL knows, and what each
// stands for: nothing may be named twice. An empty list stands for the default.
func CheckNames(list string, known map[string]string) (name string, err error) {
	if list == "" {
		return "", nil
	}
	seen := make(map[string]string)
	for name := range strings.SplitSeq(list, ":") {
		meant, ok := known[name]
		if !ok {
			return name, fmt.Errorf("unknown name %q", name)
		}
		if first, twice := seen[meant]; twice {
			if first == name {
				return name, fmt.Errorf("duplicate name %q", name)
			}
			return name, fmt.Errorf("%q is the same as %q", name, first)
		}
		seen[meant] = name
	}
	return "", nil
}
