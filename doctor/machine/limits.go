package machine

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Limit is a limit of the kernel.
type Limit struct {
	Sysctl string // the name that sysctl changes
	Value  int    // 0 if unknown
}

// Instances returns the limit of inotify instances of a user.
func (p Proc) Instances() Limit {
	return p.least("fs.inotify.max_user_instances", "user.max_inotify_instances")
}

// Watches returns the limit of inotify watches of a user.
func (p Proc) Watches() Limit {
	return p.least("fs.inotify.max_user_watches", "user.max_inotify_watches")
}

// least returns the lowest of some limits. A user namespace has limits of its own, which begin with user.
func (p Proc) least(sysctls ...string) (lowest Limit) {
	for _, name := range sysctls {
		data, err := readFile(filepath.Join(string(p), "sys", strings.ReplaceAll(name, ".", "/")), maxText)
		if err != nil {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err == nil && (lowest.Value == 0 || n < lowest.Value) {
			lowest = Limit{name, n}
		}
	}
	return lowest
}

// Kernel returns the release of the kernel; empty if unknown.
func (p Proc) Kernel() string {
	data, err := readFile(filepath.Join(string(p), "sys/kernel/osrelease"), maxText)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
