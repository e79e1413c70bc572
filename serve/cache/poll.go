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

// By REST, Envoy does not say that it refuses a response: it asks again with the version that it
// has, as does one that starts. So an Envoy that asks the same again, after it was answered, is
// taken for one that refuses the version, and gets it again after a pause only.
const (
	// pauseOfSame is the time between two answers to the same question.
	pauseOfSame = 10 * time.Second
	// soon is the time in which an Envoy may ask the same for another reason: several clusters of
	// it may have the same endpoints, and each of them asks.
	soon = 500 * time.Millisecond
	// never is longer than any request waits.
	never = 365 * 24 * time.Hour
)

// Question is a request of a client by REST.
type Question struct {
	// Client tells the client from others, Key what it asks for from what others do.
	Client, Key string
	// Node is that of the client, Address the one that it comes from. Envoy means that it is one.
	Node    *corev3.Node
	Address string
	Envoy   bool
	// Names are asked for, or All resources of the Type.
	Type  *xds.Type
	Names []string
	All   bool
	// Version is that of what the client has. Refused means that it gives a reason why it does
	// not take what it was sent, the Reason.
	Version string
	Refused bool
	Reason  string
}

// Poll is one request of a client by REST.
type Poll struct {
	Question
	cache  *Cache
	params params.Parameters
	view   *view  // of the class of the client
	state  *state // that Watch returned
}

// Reader answers clients by REST, which have no stream.
type Reader struct{ cache *Cache }

// Reader returns the Reader of REST.
func (c *Cache) Reader() Reader { return Reader{c} }

// Verdict is what to do about a request.
type Verdict struct {
	// Send means to send the version that was asked about. Pause is when to ask again, zero for
	// not before others are there.
	Send  bool
	Pause time.Duration
	// Rejected means that the client is found to reject a response, which was not known before.
	Rejected bool
}

// polled is what is known of a question.
type polled struct {
	of    *xds.Type
	names []string // the first ones
	asked int
	all   bool

	has string // version_info of the last request
	// version is what was served when the client asked last, "" for nothing; ofType is the version
	// of all resources of the type then.
	version, ofType string
	// sent is the last answer; nil where the client has confirmed it.
	sent        *answer
	sentVersion string
	refusal     *refusal
	since       time.Time // of the last answer, or of what the client said to that
	last        time.Time // when the client asked last

	// wait is for the client's answer to a Snapshot; nil where nobody waits. before means that
	// it rejected one before that.
	client *clients.Client
	wait   *wait
	before bool

	// view is that of the class of the client, params are its dynamic parameters.
	view   *view
	params params.Parameters

	// gap means that the client has a gap, which was reported; missing are the first names of that.
	gap     bool
	missing []string

	bytes int // that polls has counted
}

// answer is a response by REST.
type answer struct {
	version string
	had     string // version_info of the request
	at      time.Time
	refused bool  // by the client, which was logged
	again   bool  // it was sent after a refusal
	sure    bool  // the client gave a reason, or refused it again
	wait    *wait // for what the client says to that
}

// Poll takes down a request. rejected means that the client says so of the response before. The error is
// a status of gRPC.
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
		case was.version == q.Version: // the client has taken it
			r.cache.registry.takes(is.client.Node, is.refusal)
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

// Watch returns the resources as the client gets them, nil before the first Publish, and a channel
// that is closed once others of its type are there. class tells clients from those who get others.
func (p *Poll) Watch() (now *xds.Snapshot, class any, changed <-chan struct{}) {
	for {
		v, err := p.cache.restView(p.params)
		if err == nil {
			p.view = v // else there are too many classes: it stays in its own
		}
		changed = p.view.wait(p.Type)
		// Only now: what is published from here on closes the channel.
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

// restViews are views of clients by REST, by their parameters.
type restViews struct {
	sync.Map
	count atomic.Int64
}

// restView returns the view of a client by REST.
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

// Judge judges whether to answer with a version, "" for nothing, of what the client asks for in the
// Snapshot that Watch returned last.
func (p *Poll) Judge(version string, now *xds.Snapshot) (v Verdict) {
	gap, keeps := p.hasGap(p.Type), p.keeps()
	var missing []string
	if gap {
		missing = p.missing()
	}
	var opened *clients.Client
	v.Rejected = p.polls().with(p, func(is *polled) (refused bool) {
		if is.missing = missing; is.notes(gap, p.cache.registry) {
			opened = is.client
		}
		is.version, is.ofType = version, now.Version(p.Type)
		if keeps {
			return false
		}
		if version == "" || version == p.Version {
			if is.wait != nil && is.serves() {
				is.answers(nil, nil)
			}
			if version != "" && is.refusal != nil { // it runs what is served
				p.cache.registry.takes(is.client.Node, is.refusal)
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

// pause returns how long a client is not sent a version, since it refuses that, and whether that
// was not known before.
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

// refuses takes down that a client refuses a version. It returns true.
func (is *polled) refuses(q Question, version string) bool {
	is.sent.refused, is.sent.sure, is.since = true, q.Refused, time.Now()
	reason := "by REST Envoy gives no reason: it asks again for what it had; its own log has the reason"
	if q.Refused {
		reason = q.Reason
	}
	is.refusal = &refusal{of: is.of, version: version, names: is.names, time: is.since, message: diag.Hide(diag.ClipLine(reason, diag.MaxText))}
	return true
}

// Sent takes down that the client was sent a version.
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

// status returns the question as a client's.
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

// sync reports whether the client runs what it asks for. One that has not asked since others are
// there may be behind.
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

// inState returns the resources that the client may mean: those that it names, or the one that it
// has asked for.
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
