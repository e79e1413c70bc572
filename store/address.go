package store

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"xdspub/internal/addr"
)

// Scheme begins the address of a store.
const Scheme = "etcd://"

// Address is where a store is.
type Address struct {
	// Endpoints are the servers of the etcd, as HOST:PORT.
	Endpoints []string
	// Prefix begins all keys of the store. It begins with a slash, and ends with none.
	Prefix string
}

// maxServers bounds the servers of an Address.
const maxServers = 32

// prefixForm matches a prefix without the slash at its beginning.
var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}(/[A-Za-z0-9_.-]{1,100}){0,9}$`)

// ParseAddress reads the address of a store, such as etcd://10.0.0.1:2379,10.0.0.2:2379/fleet.
func ParseAddress(text string) (a Address, err error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok {
		return a, errors.New("write etcd://HOST:PORT[,…]/PREFIX")
	}
	servers, prefix, _ := strings.Cut(rest, "/")
	for server := range strings.SplitSeq(servers, ",") {
		host, port, err := net.SplitHostPort(server)
		number, wrong := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || host == "" || strings.ContainsAny(server, "@%?#"):
			return a, fmt.Errorf("%q is no server: write etcd://HOST:PORT[,…]/PREFIX", server)
		case wrong != nil || number == 0:
			return a, fmt.Errorf("%q has no port from 1 to 65535: write etcd://HOST:PORT[,…]/PREFIX", server)
		case slices.Contains(a.Endpoints, server):
			return a, fmt.Errorf("the server %s is there twice: leave one out", server)
		}
		a.Endpoints = append(a.Endpoints, server)
	}
	switch prefix = strings.TrimSuffix(prefix, "/"); {
	case len(a.Endpoints) > maxServers:
		return a, fmt.Errorf("the store has %d servers, and %d are allowed: leave some out", len(a.Endpoints), maxServers)
	case !prefixForm.MatchString(prefix):
		return a, fmt.Errorf("the prefix %q is invalid: write etcd://HOST:PORT/PREFIX, with letters, digits, _, ., - and single slashes", prefix)
	}
	a.Prefix = "/" + prefix
	return a, nil
}

// String returns the address as ParseAddress reads it.
func (a Address) String() string { return Scheme + strings.Join(a.Endpoints, ",") + a.Prefix }

// local reports whether all servers run on this machine. No other machine can then read a connection.
func (a Address) local() bool {
	return !slices.ContainsFunc(a.Endpoints, func(server string) bool {
		is, err := addr.Parse(server)
		return err != nil || !is.Local()
	})
}

// noTarget stands for the target of a source tree without targets. No target has this name.
const noTarget = "-"

// keys are the keys of one target.
type keys struct{ prefix, target string }

func (a Address) keys(target string) keys {
	if target == "" {
		target = noTarget
	}
	return keys{a.Prefix, target}
}

func (k keys) of(kind string) string { return k.prefix + "/" + kind + "/" + k.target }
func (k keys) head() string          { return k.of("heads") }
func (k keys) writer() string        { return k.of("writers") }

// steps returns the key of a step. Keys are in the order of serials.
func (k keys) step(serial int64) string { return fmt.Sprintf("%s/%016x", k.of("steps"), serial) }

// objects returns the beginning of the keys of all objects.
func (k keys) objects() string { return k.of("objects") + "/" }

func (k keys) chunk(hash string, number int) string {
	return fmt.Sprintf("%s%s/%04d", k.objects(), hash, number)
}

// machines returns the beginning of the keys of all machines.
func (k keys) machines() string { return k.of("machines") + "/" }
