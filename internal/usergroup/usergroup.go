// Package usergroup looks up groups of the system.
package usergroup

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// ID returns the number of a group. group is a number, or the name of a group. If no group has the name, the error
// names the remedy.
func ID(group string) (int, error) {
	if gid, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(gid), nil
	}
	g, err := user.LookupGroup(group)
	if _, ok := errors.AsType[user.UnknownGroupError](err); ok {
		return 0, fmt.Errorf("no group %q on this machine: create it, or give the number of a group", group)
	}
	if err != nil {
		return 0, fmt.Errorf("look up group %q: %w", group, err)
	}
	return strconv.Atoi(g.Gid)
}
