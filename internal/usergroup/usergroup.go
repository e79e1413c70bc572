// Package usergroup finds the groups of the system.
package usergroup

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// ID returns the number of a group that is given by its name or its number. The error says what to
// do where there is no such group.
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
