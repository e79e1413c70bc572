package machine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Listener returns the process that listens at an address of this machine. It returns nil if no process listens, or
// if the process is Hidden or in another network namespace. network is unix or tcp.
func (l *Processes) Listener(network, address string) *Process {
	inodes := l.proc.unixListeners(address)
	if network != "unix" {
		inodes = l.proc.listeners(address)
	}
	for _, p := range l.List {
		for inode := range p.sockets {
			if inodes[inode] {
				return p
			}
		}
	}
	return nil
}

// unixListeners returns the inodes of the sockets that listen at a path.
func (p Proc) unixListeners(path string) map[uint64]bool {
	const flags, inode, name = 3, 6, 7 // columns
	found := make(map[uint64]bool)
	p.eachSocket("unix", func(words []string) {
		if len(words) > name && words[flags] == "00010000" && sameFile(words[name], path) {
			if n, err := strconv.ParseUint(words[inode], 10, 64); err == nil {
				found[n] = true
			}
		}
	})
	return found
}

func sameFile(a, b string) bool {
	absolute, err := filepath.Abs(b)
	return err == nil && filepath.Clean(a) == absolute
}

// listeners returns the inodes of the TCP sockets that listen at an address of this machine.
func (p Proc) listeners(address string) map[uint64]bool {
	found := make(map[uint64]bool)
	host, port, err := net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || wrong != nil {
		return found
	}
	wanted := addresses(host)
	const local, state, inode = 1, 3, 9 // columns
	for _, file := range []string{"tcp", "tcp6"} {
		p.eachSocket(file, func(words []string) {
			if len(words) <= inode || words[state] != "0A" {
				return
			}
			at, ok := parseAddress(words[local])
			if !ok || uint64(at.Port()) != number || !at.Addr().IsUnspecified() && !wanted[at.Addr()] || len(wanted) == 0 {
				return
			}
			if n, err := strconv.ParseUint(words[inode], 10, 64); err == nil {
				found[n] = true
			}
		})
	}
	return found
}

// addresses returns the addresses of this machine that a host stands for.
func addresses(host string) map[netip.Addr]bool {
	list := make(map[netip.Addr]bool)
	ours := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	if interfaces, err := net.InterfaceAddrs(); err == nil {
		for _, a := range interfaces {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				ours = append(ours, prefix.Addr())
			}
		}
	}
	asked, err := netip.ParseAddr(host)
	for _, a := range ours {
		switch {
		case err == nil && (a == asked.Unmap() || asked.IsLoopback() && a.IsLoopback() && a.Is4() == asked.Unmap().Is4()),
			err != nil && host == "localhost" && a.IsLoopback():
			list[a] = true
		}
	}
	if err == nil && asked.IsLoopback() {
		list[asked.Unmap()] = true
	}
	return list
}

// parseAddress reads an address as the kernel writes it: each word of the address in the byte order of the machine,
// a colon, and the port.
func parseAddress(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	words, err := hex.DecodeString(host)
	number, wrong := strconv.ParseUint(port, 16, 16)
	if err != nil || wrong != nil || len(words)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(words); i += 4 {
		binary.NativeEndian.PutUint32(words[i:], binary.BigEndian.Uint32(words[i:]))
	}
	addr, ok := netip.AddrFromSlice(words)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), ok
}

// eachSocket calls see with the words of each line of a file about sockets.
func (p Proc) eachSocket(file string, see func(words []string)) {
	data, err := readFile(filepath.Join(string(p), "net", file), maxSockets)
	if err != nil {
		return
	}
	for line := range bytes.Lines(data) {
		see(strings.Fields(string(line)))
	}
}
