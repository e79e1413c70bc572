package boring

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// oidNames are BoringSSL's names for types of an otherName, and further names of BoringSSL that people may write as
// a type.
var oidNames = []string{
	"CN", "Microsoft Universal Principal Name", "UID", "commonName", "emailAddress", "id-on-personalData",
	"msUPN", "serialNumber", "subjectAltName", "userId",
}

// CheckOID returns the reason why BoringSSL can't read a text as an object identifier, or nil. Of BoringSSL's
// names, CheckOID accepts only oidNames.
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
