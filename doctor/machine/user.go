package machine

import (
	"fmt"
	"io/fs"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// User is the identity by which a process opens files.
type User struct {
	ID     int
	Groups []int
	// Privileged means that the modes of files do not bind the user.
	Privileged bool
}

// String returns the name and the number of the user.
func (u User) String() string {
	if known, err := user.LookupId(strconv.Itoa(u.ID)); err == nil {
		return fmt.Sprintf("%s (uid %d)", known.Username, u.ID)
	}
	return fmt.Sprintf("uid %d", u.ID)
}

// UserNamed returns the user with a name or a number, with the groups that the system knows. UID:GID names a user
// that the system does not know, such as the user of a container.
func UserNamed(text string) (User, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	known, err := user.Lookup(name)
	if err != nil {
		known, err = user.LookupId(name)
	}
	id, number := strconv.ParseUint(name, 10, 31)
	switch {
	case err == nil:
		id, number = strconv.ParseUint(known.Uid, 10, 31)
	case number != nil:
		return User{}, fmt.Errorf("no user %q on this machine: write UID:GID, such as 101:101", name)
	case !hasGroup:
		return User{}, fmt.Errorf("this machine does not know the groups of user %s: write UID:GID, such as %s:%s", name, name, name)
	}
	if number != nil {
		return User{}, number
	}
	u := User{ID: int(id), Privileged: id == 0}
	if hasGroup {
		gid, err := strconv.ParseUint(group, 10, 31)
		if err != nil {
			return User{}, fmt.Errorf("invalid group %q: write a number", group)
		}
		u.Groups = []int{int(gid)}
		return u, nil
	}
	ids, err := known.GroupIds()
	if err != nil {
		return User{}, err
	}
	u.Groups = numbers(ids)
	return u, nil
}

// The rights to a file.
const (
	Read   fs.FileMode = 0o4
	Search fs.FileMode = 0o1 // enter a folder
)

// May reports whether the mode of a file gives the user some rights. It does not look at access control lists.
func (u User) May(info fs.FileInfo, rights fs.FileMode) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case u.Privileged || !ok:
		return true
	case int(owner.Uid) == u.ID:
		mode >>= 6
	case slices.Contains(u.Groups, int(owner.Gid)):
		mode >>= 3
	}
	return mode&rights == rights
}
