package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"xdspub/envoy/envoyapi"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/parallel"
	"xdspub/render/history"
	"xdspub/source/decode"
	"xdspub/source/load"
	"xdspub/source/syntax"
	"xdspub/store/waves"
	"xdspub/xds"
)

// FollowerOptions configure a Follower.
type FollowerOptions struct {
	Options
	// Target is the target to follow; empty for the target of a source tree without targets.
	Target string
	// Machine is the name of the machine, and Labels are its labels (waves.Labels): they say when the machine gets the
	// candidate of a rollout. A follower without a name gets no candidate.
	Machine, Labels string
	// Acknowledge makes the machine acknowledge heads.
	Acknowledge bool
	// Envoy is the release that gets the resources; nil means the latest known release. Streams means that clients get
	// the resources by streams alone.
	Envoy   *envoyapi.Version
	Streams bool
	// Version is the version of the program.
	Version string
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Follower is a load.Remote: it has the resources of a target, and acknowledges them.
type Follower struct {
	options  FollowerOptions
	keys     keys
	registry *xds.Registry // the types in the resources; nil for those of the API
	changed  chan struct{}
	first    chan struct{} // closed after the first contents, or the first error
	acks     *acknowledger

	mu       sync.Mutex
	once     sync.Once      // closes first
	contents *load.Contents // nil before the first
	files    map[xds.Key]*held
	state    load.State
	heads    map[uint64]Head // by the number of the contents, until the contents are judged
	wrong    error           // why the contents are missing or old; nil for neither
	said     string          // the last logged error

	// Only follow uses these fields.
	at    at
	moved int64 // the revision that has moved the head
	// lost is when the watch of the head ended; zero if the store has answered since.
	lost time.Time
}

// held is the file that holds the resources of a key.
type held struct {
	resources []*xds.Resource
	hash      [sha256.Size]byte
	file      *decode.File
}

// NewFollower returns a Follower. NewFollower connects to no server.
func NewFollower(o FollowerOptions) *Follower {
	f := &Follower{
		options: o, keys: o.Address.keys(o.Target), changed: make(chan struct{}, 1), first: make(chan struct{}),
		files: make(map[xds.Key]*held), heads: make(map[uint64]Head), state: load.State{Since: time.Now()},
	}
	if o.Envoy != nil {
		f.registry = o.Envoy.Registry()
	}
	f.acks = newAcknowledger(f)
	return f
}

// member returns this machine as a member of a wave.
func (f *Follower) member() waves.Machine {
	return waves.Machine{Target: f.keys.target, Name: f.options.Machine, Labels: f.options.Labels}
}

// Run implements load.Remote.
func (f *Follower) Run(ctx context.Context) {
	var running parallel.Group
	running.Go(crash.Again(ctx.Done(), func() { f.follow(ctx) }, f.options.Log.Crashed))
	if f.options.Acknowledge {
		running.Go(crash.Again(ctx.Done(), func() { f.acks.run(ctx) }, f.options.Log.Crashed))
	}
	running.Wait()
}

// Changed implements load.Remote.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Kind implements load.Remote.
func (f *Follower) Kind() string { return "store" }

// State implements load.Remote.
func (f *Follower) State() load.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// maxUnjudged bounds Follower.heads.
const maxUnjudged = 100

// firstPatience is how long Read waits for the first Contents.
const firstPatience = 2 * requestTime

// Read implements load.Reader. The error says why there are no Contents.
func (f *Follower) Read(ctx context.Context) (load.Contents, error) {
	select {
	case <-ctx.Done():
		return load.Contents{}, ctx.Err()
	case <-time.After(firstPatience):
	case <-f.first:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.contents != nil {
		return *f.contents, nil
	}
	if f.wrong != nil {
		return load.Contents{}, fmt.Errorf("%s: %w", f.options.Address, f.wrong)
	}
	return load.Contents{}, fmt.Errorf("%s has not answered", f.options.Address)
}

// Judged implements load.Remote.
func (f *Follower) Judged(j load.Judgement) {
	f.mu.Lock()
	head, known := f.heads[j.N]
	for n := range f.heads {
		if n < j.N {
			delete(f.heads, n)
		}
	}
	f.mu.Unlock()
	if known {
		f.acks.judged(head, j)
	}
}

// fail records why the store can't be used, and logs the error unless the last logged error is the same. connected
// means that the store answers.
func (f *Follower) fail(err error, connected bool) {
	f.mu.Lock()
	f.wrong = err
	was := f.state
	if f.state.Error = err.Error(); !connected && f.state.Connected {
		f.state.Connected, f.state.Server, f.state.Since = false, "", f.lost
		if f.lost.IsZero() {
			f.state.Since = time.Now()
		}
	}
	if connected && f.state.UnusableSince.IsZero() {
		f.state.UnusableSince = time.Now()
	}
	is, logged := f.state, f.said == err.Error()
	f.said = err.Error()
	f.mu.Unlock()
	if !logged {
		f.options.Log.Write(event.StoreFailed{Store: f.options.Address.String(), Error: err})
	}
	f.once.Do(func() { close(f.first) })
	if is != was {
		f.signal()
	}
}

// works records that the store answers, and that the stored head has no fault.
func (f *Follower) works() {
	f.lost = time.Time{}
	f.mu.Lock()
	was := f.state
	if f.wrong, f.said = nil, ""; !f.state.Connected || !f.state.UnusableSince.IsZero() {
		f.state = load.State{Connected: true, Server: strings.Join(f.options.Address.Endpoints, ","), Since: time.Now(), Share: f.state.Share}
	}
	f.state.Error = ""
	is := f.state
	f.mu.Unlock()
	if is != was {
		f.signal()
	}
}

// recordShare records what this machine gets of the rollout of a head.
func (f *Follower) recordShare(out *Head) {
	f.mu.Lock()
	was := f.state.Share
	f.state.Share = out.share(f.member())
	changed := f.state.Share != was
	f.mu.Unlock()
	if changed {
		f.signal()
	}
}

// unusable reports whether the store answers, and the head can't be used.
func (f *Follower) unusable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.state.UnusableSince.IsZero()
}

// signal wakes the receiver of Changed.
func (f *Follower) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// take replaces the contents by the resources of a head.
func (f *Follower) take(h Head, tree *history.Tree) error {
	files, list, err := f.filesOf(tree.Snapshot())
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := load.Contents{N: 1, Files: list}
	if f.contents != nil {
		c.N = f.contents.N + 1
	}
	f.contents, f.files = &c, files
	f.heads[c.N] = h
	delete(f.heads, c.N-maxUnjudged)
	f.once.Do(func() { close(f.first) })
	f.signal()
	return nil
}

// filesOf returns the files of a Snapshot, by key and sorted by name. A key keeps its file if its resources stay the
// same.
func (f *Follower) filesOf(s *xds.Snapshot) (map[xds.Key]*held, []*decode.File, error) {
	all := s.All()
	files, list := make(map[xds.Key]*held, len(all)), make([]*decode.File, 0, len(all))
	for len(all) > 0 {
		key, n := all[0].Key, 1
		for n < len(all) && all[n].Key == key {
			n++
		}
		is, err := f.fileOf(key, all[:n])
		if err != nil {
			return nil, nil, err
		}
		files[key], list, all = is, append(list, is.file), all[n:]
	}
	slices.SortFunc(list, func(a, b *decode.File) int { return cmp.Compare(a.Source.Name, b.Source.Name) })
	return files, list, nil
}

// fileOf returns the file of the resources of a key.
func (f *Follower) fileOf(key xds.Key, resources []*xds.Resource) (*held, error) {
	was := f.files[key]
	if was != nil && slices.Equal(was.resources, resources) {
		return was, nil
	}
	data, err := history.Document(resources)
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		r.Unload()
	}
	is := &held{resources: slices.Clone(resources), hash: sha256.Sum256(data)}
	if was != nil && was.hash == is.hash {
		is.file = was.file
		return is, nil
	}
	name := f.options.Address.String() + "/" + key.Type.API + "/" + key.Name
	of := decode.SourceOptions{Envoy: f.options.Envoy, Streams: f.options.Streams}
	is.file = decode.NewSource(name, syntax.Binary, data, of).Decode(nil)
	return is, nil
}
