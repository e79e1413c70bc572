package cache

import (
	"maps"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds/clients"
	"xdspub/xds/params"
)

// What a status shows of clients is what the clients have said. So the bytes of it are bounded: no account of a
// client holds them.
const (
	// mostDetails bounds the details of all connected clients in a list. Clients beyond that have none.
	mostDetails = 16 << 20
	// mostGoneBytes bounds what is remembered of clients that are gone.
	mostGoneBytes = 8 << 20
	// mostPolledBytes bounds what is known of questions by REST.
	mostPolledBytes = 40 << 20
	// mostNameBytes bounds the names of one subscription that are shown.
	mostNameBytes = 1 << 10
)

// firstNames returns copies of the first of some names.
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

// shownParameters returns the parameters of a client, or the first 4 KiB of them by their keys.
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

// bytesOf returns how many bytes a client has in a list.
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

// heldByShown is what a client, a subscription or a finding has beside its texts.
const heldByShown = 300

// withoutDetails returns a client without what it asks for and why it rejects what it rejects.
func withoutDetails(c clients.Client) clients.Client {
	c.Parameters = nil
	for i := range c.Subscriptions {
		s := &c.Subscriptions[i]
		s.Names, s.Missing = []string{}, nil
		if s.Refusal != nil {
			s.Refusal = &clients.Refusal{Version: s.Refusal.Version, Time: s.Refusal.Time, Message: "not shown: the status has the details of the first clients only", Findings: diag.List{}}
		}
	}
	return c
}
