// Package published reads the output directory back as resources: the published clusters and
// listeners, the path subscriptions that they have to its files, and the statistics by which an
// Envoy tells which version of a file it runs. It writes nothing.
//
//	reader := published.New(published.Options{Dir: "out"})
//	state, err := reader.State()
package published

import (
	"cmp"
	"path/filepath"

	"xdspub/envoy/envoyapi"
	"xdspub/event"
	"xdspub/internal/fspath"
	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/xds"
)

// Options of a Reader.
type Options struct {
	// Dir is the output directory.
	Dir string
	// EnvoyPath is Dir as Envoy sees it; empty means Dir made absolute.
	EnvoyPath string
	// Format of the published files; nil means JSON.
	Format *render.Format
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Reader reads one output directory, again and again. It decodes again only what changed. Not
// for concurrent use.
type Reader struct {
	options Options
	files   *publish.Reader
	derived map[*xds.Type]*derived // from the published clusters and listeners
	// readOut are the published files that were read back, by path.
	readOut map[string]*readOut
	// rendered has, by path, the files of the last render, which need not be read back after the publish.
	rendered map[string]*readOut
	// damage holds, by path, why the files of clusters and listeners could not be read the last time, or "".
	damage map[string]string
	// subscribers is the last result of Subscribers.
	subscribers *Subscribers
}

// New returns a Reader. It reads nothing yet.
func New(o Options) *Reader {
	o.Format = cmp.Or(o.Format, render.JSON)
	return &Reader{
		options:  o,
		files:    publish.NewReader(o.Dir),
		derived:  make(map[*xds.Type]*derived),
		readOut:  make(map[string]*readOut),
		rendered: make(map[string]*readOut),
		damage:   make(map[string]string),
	}
}

// Opened makes the Reader read the output directory through d: with d's knowledge, and in the folder that d
// opened, since somebody may turn a link on the given path later. Opened ends the trust in earlier contents.
func (r *Reader) Opened(d *publish.Dir) {
	r.options.Dir, r.files = d.Path(), d.Reader()
	r.derived, r.subscribers = make(map[*xds.Type]*derived), nil // which hold for the directory as Envoy sees it
	r.Trust(false)
}

// Trust makes the Reader believe, until Trust(false), that the plan before was published whole
// and that nobody else has changed the output directory since (publish.Reader.Trust).
func (r *Reader) Trust(trust bool) { r.files.Trust(trust) }

// StillOut reports whether a published file on disk is unchanged. StillOut asks the file system even while the
// Reader trusts (publish.Reader.StillOut).
func (r *Reader) StillOut(file string) bool { return r.files.StillOut(file) }

// Trusts reports the argument of the last Trust.
func (r *Reader) Trusts() bool { return r.files.Trusts() }

// Dir returns the path of the output directory.
func (r *Reader) Dir() string { return r.options.Dir }

// Format returns the format of the published files.
func (r *Reader) Format() *render.Format { return r.options.Format }

// EnvoyPath returns the output directory as Envoy sees it.
func (r *Reader) EnvoyPath() string {
	if r.options.EnvoyPath != "" {
		return filepath.Clean(r.options.EnvoyPath)
	}
	return DefaultEnvoyPath(r.options.Dir)
}

// DefaultEnvoyPath returns an output directory as an Envoy of the same file system sees it:
// absolute, and without links, which may change.
func DefaultEnvoyPath(dir string) string { return fspath.Resolve(dir) }

// Manifest returns the record.
func (r *Reader) Manifest() (publish.Manifest, error) { return r.files.Manifest() }
