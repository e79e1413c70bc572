package listen

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"

	"xdspub/internal/addr"
)

// passed are the sockets that systemd has passed to the process and that no caller has taken, by their names.
var passed struct {
	sync.Mutex
	read bool
	all  map[string][]net.Listener
}

// Passed returns the listeners on the sockets of a name that systemd has passed to the process (FileDescriptorName= of
// a socket unit, LISTEN_FDNAMES). Each socket can be taken once. systemd decides who may connect to a Unix socket, and
// keeps the file of the socket.
func Passed(name string, o Options) ([]net.Listener, error) {
	passed.Lock()
	defer passed.Unlock()
	if !passed.read {
		var err error
		if passed.all, err = activation.ListenersWithNames(); err != nil {
			return nil, err
		}
		passed.read = true
	}
	all := passed.all[name]
	if len(all) == 0 {
		return nil, fmt.Errorf("listen on fd:%s: %w", name, notPassed(slices.Sorted(maps.Keys(passed.all))))
	}
	var list []net.Listener
	for _, l := range all {
		a := addr.Address{Network: l.Addr().Network(), Name: l.Addr().String()}
		if err := o.permits(a); err != nil {
			return nil, err
		}
		if o.Gate != nil {
			l = newArrivals(l, o.Gate)
		}
		list = append(list, l)
	}
	delete(passed.all, name)
	return list, nil
}

// notPassed says that systemd has passed no socket of a name. names are the other sockets.
func notPassed(names []string) error {
	if len(names) == 0 {
		return errors.New("systemd has passed no socket: start the socket unit, and let it name this service")
	}
	return fmt.Errorf("systemd has passed only %s: correct NAME, or FileDescriptorName= in the socket unit", strings.Join(names, ", "))
}
