package envoy

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Admin is the admin interface of one Envoy. An Admin is safe for concurrent use.
type Admin struct {
	url           string
	network, addr string
	host, prefix  string // of the requests

	mu   sync.Mutex
	last process // the process that answered last; zero before the first answer
}

// process has the facts that do not change while an Envoy runs.
type process struct {
	incarnation Incarnation
	serverInfo
	matcher bool     // Bootstrap.StatsMatcher
	paths   []string // Bootstrap.Paths
}

// NewAdmin returns the Admin of an address: http://HOST:PORT, also with the path of a proxy, or unix:PATH. NewAdmin
// sends no request.
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

// Address returns the network, tcp or unix, and the address that the requests go to.
func (a *Admin) Address() (network, address string) { return a.network, a.addr }

// String returns the address as it was given.
func (a *Admin) String() string { return a.url }
