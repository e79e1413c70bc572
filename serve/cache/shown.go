package cache

import (
	"maps"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds/clients"
	"xdspub/xds/params"
)

// The status shows texts that clients have sent. These constants bound the bytes, which no account of package
// memory counts.
const (
	// mostDetails bounds the details of all connected clients in a list, in bytes. Further clients have no
	// details.
	mostDetails = 16 << 20
	// mostGoneBytes bounds the memory of disconnected clients, in bytes.
	mostGoneBytes = 8 << 20
	// mostPolledBytes bounds the memory of REST requests, in bytes.
	mostPolledBytes = 40 << 20
	// mostNameBytes bounds the shown names of one subscription, in bytes.
	mostNameBytes = 1 << 10
)

// firstNames returns copies of the first names, up to the limits.
func firstNames(names []string) (list []string) {
	n := 0
	for _, name := range names {
		if n += len(name); n > mostNameBytes || len(list) == clients.MostNames {
			break
		}
		list = append(list, strings.Clone(name))
	}
	return list
}

// shownParameters returns the first parameters of a client in the order of keys, up to diag.MaxText bytes.
func shownParameters(p params.Parameters) params.Parameters {
	n, first := 0, make(params.Parameters)
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if n += len(key) + len(p[key]); n > diag.MaxText {
			return first
		}
		first[key] = p[key]
	}
	return p
}

// bytesOf returns the memory of a listed client, in bytes.
func bytesOf(c clients.Client) (n int) {
	n = heldByShown + len(c.Node) + len(c.Cluster) + len(c.UserAgent) + len(c.Address)
	for key, value := range c.Parameters {
		n += heldByParameter + len(key) + len(value)
	}
	for _, s := range c.Subscriptions {
		n += heldByShown + bytesOfNames(s.Names) + bytesOfNames(s.Missing)
		if s.Refusal != nil {
			n += len(s.Refusal.Message) + bytesOfFindings(s.Refusal.Findings)
		}
	}
	return n
}

func bytesOfNames(names []string) (n int) {
	for _, name := range names {
		n += len(name)
	}
	return n
}

func bytesOfFindings(list diag.List) (n int) {
	for _, d := range list {
		n += heldByShown + len(d.Message)
	}
	return n
}

// heldByShown is the memory of a client, subscription or finding, in bytes, without its texts.
const heldByShown = 300

// withoutDetails returns a client without parameters, names and reasons of rejections.
func withoutDetails(c clients.Client) clients.Client {
	c.Parameters = nil
	for i := range c.Subscriptions {
		s := &c.Subscriptions[i]
		s.Names, s.Missing = []string{}, nil
		if s.Refusal != nil {
			s.Refusal = &clients.Refusal{
				Version: s.Refusal.Version, Time: s.Refusal.Time,
				Message: "not shown: the status has the details of the first clients only", Findings: diag.List{},
			}
		}
	}
	return c
}
