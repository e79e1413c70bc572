package cache

import (
	"fmt"
	"slices"

	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// status returns the status of the client's subscriptions.
func (s *Stream) status() []clients.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses()
}

// statuses is status for a caller that holds the lock.
func (s *Stream) statuses() []clients.Subscription {
	list := make([]clients.Subscription, 0, len(s.subscriptions))
	for _, t := range xds.InTurn {
		if sub := s.subscriptions[t]; sub != nil {
			list = append(list, s.statusOf(sub))
		}
	}
	return list
}

func (s *Stream) statusOf(sub *subscription) clients.Subscription {
	var names []string
	for name := range sub.names {
		names = append(names, plain(name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	is := clients.Subscription{
		Sync: s.syncOf(sub), API: sub.of.API, All: sub.wildcard, Asked: len(names), Names: append([]string{}, firstNames(names)...),
		Acknowledged: sub.last.acknowledged, Sent: sub.last.sent, Since: s.client.Since,
	}
	if now := s.view.current.Load(); now != nil {
		is.Version = now.Version(sub.of)
		if s.gap(sub, now) {
			is.Missing = s.missing(sub)
		}
	}
	if !sub.last.since.IsZero() {
		is.Since = sub.last.since.UTC().Round(0)
	}
	if r := sub.last.nack; r != nil {
		is.Refusal = &clients.Refusal{Version: r.version, Time: r.time.UTC().Round(0), Message: r.message, Findings: s.findings(r)}
	}
	return is
}

// findings returns the findings about a NACK of the client.
func (s *Stream) findings(r *refusal) diag.List {
	return r.findings(fmt.Sprintf("client %q", s.client.Node), &s.view.clients.places)
}

// syncOf returns the status of a subscription. The caller holds the lock.
func (s *Stream) syncOf(sub *subscription) clients.Sync {
	now := s.load()
	switch {
	case sub.last.nack != nil && sub.nack.retries:
		return clients.Retrying
	case sub.last.nack != nil:
		return clients.Rejected
	case now != nil && s.gap(sub, now):
		return clients.NoVariant
	case sub.waits() || now != nil && s.response(sub, now) != nil:
		return clients.Stale
	case !sub.deliveredAny():
		return clients.NotSent
	}
	return clients.Synced
}

// waits reports whether the client has not answered a response, except a heartbeat, or is waiting for a
// retry.
func (s *subscription) waits() bool {
	return !s.nack.again.IsZero() || s.made != nil && !s.made.beat || s.sent != nil && !s.sent.beat
}

// deliveredAny reports whether the client has got a response on this stream, or may have resources from an
// earlier stream.
func (s *subscription) deliveredAny() bool {
	if s.at != nil {
		return true
	}
	for _, version := range s.versions {
		if version != "" {
			return true
		}
	}
	return false
}
