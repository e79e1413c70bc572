package envoy

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Admin is the admin interface of one Envoy. It may be used by several goroutines.
type Admin struct {
	url           string
	network, addr string
	host, prefix  string // of the requests

	mu   sync.Mutex
	last process // that answered last
}

// process holds the facts that do not change while an Envoy runs.
type process struct {
	incarnation Incarnation
	serverInfo
	matcher bool     // the bootstrap has a stats_matcher
	paths   []string // that the bootstrap names
}

// NewAdmin returns the Admin at http://host:port, which may end in the path that a proxy
// adds, or at unix:PATH. It sends no request yet.
func NewAdmin(address string) (*Admin, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		return &Admin{url: address, network: "unix", addr: path, host: "envoy"}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("admin %q: want http://HOST:PORT or unix:PATH", address)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return nil, fmt.Errorf("admin %q: want http://HOST:PORT or unix:PATH", address)
	}
	return &Admin{url: address, network: "tcp", addr: u.Host, host: u.Host, prefix: strings.TrimSuffix(u.Path, "/")}, nil
}

// String returns the address as it was given.
func (a *Admin) String() string { return a.url }
