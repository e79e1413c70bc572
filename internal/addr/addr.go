// Package addr reads the addresses on which xdspub listens, and the addresses to which clients connect.
package addr

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Address is an address on which a server listens.
type Address struct {
	// Network is tcp, unix or fd. Name is HOST:PORT for tcp, a path for unix, and for fd the name of a socket that
	// systemd passes.
	Network, Name string
}

// ParseListener reads an Address on which a server listens: the forms of Parse, and fd:NAME.
func ParseListener(text string) (Address, error) {
	name, ok := strings.CutPrefix(text, "fd:")
	switch {
	case !ok:
		return Parse(text)
	case name == "":
		return Address{}, fmt.Errorf("%q has no name: write fd:NAME, with the FileDescriptorName= of a socket unit", text)
	}
	return Address{"fd", name}, nil
}

// Parse reads an Address of the form HOST:PORT or unix:PATH. A PORT alone is on the loopback interface.
func Parse(text string) (Address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" || strings.HasPrefix(path, "@") || strings.ContainsRune(path, 0) {
			return Address{}, fmt.Errorf("%q has no path: write unix:PATH", text)
		}
		return Address{"unix", path}, nil
	}
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = net.JoinHostPort("127.0.0.1", text)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("%q is no address: write HOST:PORT or unix:PATH", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Address{}, fmt.Errorf("%q has no port from 0 to 65535", text)
	}
	return Address{"tcp", net.JoinHostPort(host, port)}, nil
}

func (a Address) String() string {
	if a.Network != "tcp" {
		return a.Network + ":" + a.Name
	}
	return a.Name
}

// Local reports whether only processes of this machine can connect. The only local host name is localhost: another
// name may resolve to any address.
func (a Address) Local() bool {
	host, _, _ := net.SplitHostPort(a.Name)
	ip, err := netip.ParseAddr(host)
	return a.Network == "unix" || host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
