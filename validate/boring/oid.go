package boring

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// oidNames are names that BoringSSL knows for what an otherName can be, or is
// mistaken for.
var oidNames = []string{
	"CN", "Microsoft Universal Principal Name", "UID", "commonName", "emailAddress", "id-on-personalData",
	"msUPN", "serialNumber", "subjectAltName", "userId",
}

// CheckOID says why a text is no object identifier. Of the names that BoringSSL
// knows, only those are taken that make sense in a certificate's name.
func CheckOID(text string) error {
	if slices.Contains(oidNames, text) {
		return nil
	}
	arcs := strings.Split(text, ".")
	if len(arcs) < 2 {
		return errors.New("it must be numbers separated by dots")
	}
	var numbers []uint64
	for _, arc := range arcs {
		n, err := strconv.ParseUint(arc, 10, 64)
		if err != nil || arc != strconv.FormatUint(n, 10) {
			return errors.New("it must be numbers separated by dots")
		}
		numbers = append(numbers, n)
	}
	switch first, second := numbers[0], numbers[1]; {
	case first > 2:
		return errors.New("the first number is at most 2")
	case first < 2 && second > 39:
		return errors.New("the second number is at most 39 after 0 and 1")
	case second > 1<<64-1-80:
		return errors.New("the second number is too large")
	}
	return nil
}
