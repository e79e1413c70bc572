package cache

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/params"
)

// Over REST, Envoy doesn't report a refusal: Envoy repeats the request with its old version, like an Envoy
// that starts. So an answered Envoy that repeats its request counts as having refused the version, and gets
// it again only after a pause.
const (
	// pauseOfSame is the time between two answers to the same request.
	pauseOfSame = 10 * time.Second
	// soon is the time in which an Envoy may repeat a request for another reason: several of its clusters may
	// have the same endpoints, and each cluster sends the request.
	soon = 500 * time.Millisecond
	// never is longer than any request waits.
	never = 365 * 24 * time.Hour
)

// Question is a request of a REST client.
type Question struct {
	// Client identifies the client, Key its subscription.
	Client, Key string
	// Node is the client's node, Address its address. Envoy means that the client is an Envoy.
	Node    *corev3.Node
	Address string
	Envoy   bool
	// The request is for Names, sorted and without duplicates, or for All resources of the Type.
	Type  *xds.Type
	Names []string
	All   bool
	// Version is the client's version. Refused means that the request is a NACK of the last response, with
	// the Reason.
	Version string
	Refused bool
	Reason  string
}

// Poll is one request of a REST client.
type Poll struct {
	Question
	cache  *Cache
	params params.Parameters
	view   *view  // of the client's class
	state  *state // last returned by Watch
}

// Reader answers REST clients, which have no stream.
type Reader struct{ cache *Cache }

// Reader returns a Reader of the Cache.
func (c *Cache) Reader() Reader { return Reader{c} }

// Verdict says how to answer a request.
type Verdict struct {
	// Send means that the caller must send the version. Otherwise the caller waits for a change, and calls
	// Judge again after Pause at the latest; a zero Pause has no end.
	Send  bool
	Pause time.Duration
	// Rejected means that Judge counts the request as the first NACK of the version.
	Rejected bool
}

// polled is the state of a Question over several requests.
type polled struct {
	of    *xds.Type
	names []string // the first names
	asked int      // number of names
	all   bool

	has string // version_info of the last request
	// version is the served version at the client's last request, "" for none. ofType is the version of all
	// resources of the type at that time.
	version, ofType string
	// sent is the last answer; nil after its ACK.
	sent        *answer
	sentVersion string
	refusal     *refusal
	since       time.Time // time of the last answer, ACK or NACK
	last        time.Time // time of the last request

	// wait waits for the client's answer to a Snapshot; nil without a wait. waitFrom is the number of the state with
	// this Snapshot. before means that the client had already rejected an earlier Snapshot.
	client   *clients.Client
	wait     *wait
	waitFrom int
	before   bool

	// view is the view of the client's class, params are the client's dynamic parameters.
	view   *view
	params params.Parameters

	// gap means that the client has a reported gap. missing are the first names of missing resources.
	gap     bool
	missing []string

	bytes int // counted in polls.bytes
}

// answer is a response to a REST client.
type answer struct {
	version string
	had     string // version_info of the request
	at      time.Time
	refused bool  // by the client; already logged
	again   bool  // sent after a refusal
	sure    bool  // the client gave a reason, or refused again
	wait    *wait // for the client's answer to this response
}

// Poll records a request. rejected means that the request is the first NACK of the response before. The error
// is a gRPC status.
func (r Reader) Poll(q Question) (p *Poll, rejected bool, err error) {
	p = &Poll{Question: q, cache: r.cache, params: r.cache.options.Parameters(q.Node)}
	if p.view, err = p.cache.restView(p.params); err != nil {
		return nil, false, err
	}
	return p, p.polls().with(p, func(is *polled) (refused bool) {
		was := is.sent
		is.has = q.Version
		switch {
		case was == nil:
		case was.version == q.Version: // an ACK
			r.cache.registry.recordAck(is.client.Node, is.refusal)
			is.sent, is.refusal, is.since = nil, nil, is.last
		case q.Refused && !was.refused:
			return is.refuses(q, was.version)
		}
		return false
	}), nil
}

// Parameters returns the dynamic parameters of the client.
func (p *Poll) Parameters() params.Parameters { return p.params }

func (p *Poll) polls() *polls { return p.cache.registry.polls }

// Watch returns the client's resources, nil before the first Publish, and a channel that is closed when
// resources of the type change, and at a Retry. class is a comparable value that identifies the client's
// class.
func (p *Poll) Watch() (now *xds.Snapshot, class any, changed <-chan struct{}) {
	for {
		v, err := p.cache.restView(p.params)
		if err == nil {
			p.view = v // otherwise the limit of classes is reached, and the client stays in its class
		}
		changed = p.view.wait(p.Type)
		// Load after wait: a later publish closes the channel.
		is := p.view.current.Load()
		if again, err := p.cache.restView(p.params); err == nil && again != p.view {
			continue
		}
		if p.state = is; is != nil {
			now = is.Snapshot
		}
		return now, p.view, changed
	}
}

// restViews are the views of REST clients, by parameters.
type restViews struct {
	sync.Map
	count atomic.Int64
}

// restView returns the view of the REST clients with Parameters. The error is a gRPC status.
func (c *Cache) restView(of params.Parameters) (*view, error) {
	key := of.String()
	if v, ok := c.rest.Load().Load(key); ok {
		return v.(*view), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	is, err := c.classOf(of)
	if err != nil {
		return nil, err
	}
	v := c.view(is, form{Kind: REST})
	if known := c.rest.Load(); known.count.Add(1) <= mostPolled {
		known.Store(key, v)
	}
	return v, nil
}

// Judge decides whether to answer with a version of the requested resources; "" for no resources. now is the
// Snapshot of the last Watch, and not nil.
func (p *Poll) Judge(version string, now *xds.Snapshot) (v Verdict) {
	gap, keeps := p.hasGap(p.Type), p.mustKeep()
	var missing []string
	if gap {
		missing = p.missing()
	}
	var opened *clients.Client
	v.Rejected = p.polls().with(p, func(is *polled) (refused bool) {
		if is.missing = missing; is.countGap(gap, p.cache.registry) {
			opened = is.client
		}
		is.version, is.ofType = version, now.Version(p.Type)
		if keeps {
			return false
		}
		if version == "" || version == p.Version {
			if is.wait != nil && is.serves() {
				is.answer(nil, nil)
			}
			if version != "" && is.refusal != nil { // the client runs the served version
				p.cache.registry.recordAck(is.client.Node, is.refusal)
				is.sent, is.refusal = nil, nil
			}
			return false
		}
		v.Pause, refused = is.pause(p.Question)
		v.Send = v.Pause == 0
		return refused
	})
	if opened != nil {
		p.cache.registry.logGap(opened, p.Type, p.state, missing)
	}
	return v
}

// pause returns how long to withhold a version that the client refuses, and whether the refusal is new.
func (is *polled) pause(q Question) (pause time.Duration, refused bool) {
	was := is.sent
	if was == nil || was.version != is.version {
		return 0, false
	}
	if q.Refused {
		return never, false
	}
	since := time.Since(was.at)
	if !q.Envoy && !was.refused || was.had != q.Version || since < soon {
		return 0, false
	}
	was.sure = was.again
	if !was.refused {
		refused = is.refuses(q, was.version)
	}
	return max(0, pauseOfSame-since), refused
}

// refuses records that a client refuses a version, and returns true.
func (is *polled) refuses(q Question, version string) bool {
	is.sent.refused, is.sent.sure, is.since = true, q.Refused, time.Now()
	reason := "over REST Envoy gives no reason: it repeats its request with its old version; see the reason in its log"
	if q.Refused {
		reason = q.Reason
	}
	is.refusal = &refusal{of: is.of, version: version, names: is.names, time: is.since, message: diag.Hide(diag.ClipLine(reason, diag.MaxText))}
	return true
}

// Sent records that the client was sent a version.
func (p *Poll) Sent(version string) {
	p.polls().with(p, func(is *polled) bool {
		was := is.sent
		is.sent = &answer{version: version, had: p.Version, at: time.Now()}
		if is.serves() {
			is.sent.wait = is.wait
		}
		is.sentVersion, is.since = version, is.sent.at
		if was != nil && was.version == version {
			is.sent.refused, is.sent.again = was.refused, was.refused
			if time.Since(was.at) < soon {
				is.sent.at = was.at
			}
		}
		return false
	})
}

// status returns the status of the subscription.
func (is *polled) status() clients.Subscription {
	now := is.view.current.Load()
	s := clients.Subscription{
		Sync: is.sync(now), API: is.of.API, All: is.all, Names: append([]string{}, is.names...), Asked: is.asked,
		Missing: is.missing, Version: is.version, Acknowledged: is.has, Sent: is.sentVersion, Since: is.since.UTC().Round(0),
	}
	if r := is.refusal; r != nil {
		s.Refusal = &clients.Refusal{Version: r.version, Time: r.time.UTC().Round(0), Message: r.message, Findings: slices.Concat(diag.List{}, r.found)}
	}
	return s
}

// sync returns the status of the request. A client without a request since the last change counts as stale.
func (is *polled) sync(now *state) clients.Sync {
	switch {
	case is.refusal != nil:
		return clients.Rejected
	case is.gap:
		return clients.NoVariant
	case is.version == "":
		return clients.NotSent
	case is.version != is.has || now != nil && now.Version(is.of) != is.ofType:
		return clients.Stale
	}
	return clients.Synced
}

// inState returns the resources that the refusal may be about: the only requested resource, or the first
// mostBlamed resources in the message. inState adds the names from the message to r.names.
func (r *refusal) inState(now *state) (list []*xds.Resource) {
	if len(r.names) == 1 {
		return slices.DeleteFunc([]*xds.Resource{now.Lookup(r.of, r.names[0])}, func(is *xds.Resource) bool { return is == nil })
	}
	for _, word := range strings.FieldsFunc(r.message, func(c rune) bool { return strings.ContainsRune(" \"'`,;()", c) }) {
		if is := now.Lookup(r.of, strings.TrimRight(word, ".:")); is != nil && !slices.Contains(list, is) && len(list) < mostBlamed {
			list, r.names = append(list, is), append(slices.Clip(r.names), is.Name)
		}
	}
	return list
}
