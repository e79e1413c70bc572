package boring

import (
	"fmt"
	"strings"
)

// CheckNames checks a list of key exchange groups or signature algorithms, separated by colons. known maps each
// name in BoringSSL to the group or algorithm. A list must not select a group or algorithm twice. CheckNames
// returns the first fault and the faulty name. An empty list selects the default.
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
