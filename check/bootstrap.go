package check

import (
	"context"
	"path/filepath"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/source/follow"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// BootstrapOptions are the options of Bootstrap.
type BootstrapOptions struct {
	Rules
	// Path is the path of an Envoy's bootstrap.
	Path string
	// Root is the folder that relative paths in the bootstrap begin at; empty for the current folder.
	Root string
	// ByRoot means that the caller takes the file for a bootstrap only because the user gave Root, and not because
	// of its content.
	ByRoot bool
	// Draft is the text of a bootstrap that is not written yet, and replaces the file at Path. Files that the draft
	// names may be missing, and Bootstrap does not read the files that Envoy subscribes to.
	Draft *load.Input
	// Overlay has texts that replace the bootstrap and the files that the Envoy subscribes to.
	Overlay map[string][]byte
}

// Bootstrap checks the resources of an Envoy: the static resources of its bootstrap, and the files that it
// subscribes to. Result.Diagnostics has the faults. Bootstrap returns an error if a file could not be read, or if
// ctx has ended.
func Bootstrap(ctx context.Context, o BootstrapOptions) (*Result, error) {
	start := time.Now()
	if o.Draft != nil {
		o.Path = o.Draft.Name
	}
	followed, err := follow.Bootstrap(ctx, o.Path, follow.Options{
		Envoy: o.Envoy, Root: o.Root, Disable: o.Disable, StubSecrets: o.StubSecrets, Draft: o.Draft, Overlay: load.NewOverlay(o.Overlay),
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r := &Result{Snapshot: followed.Snapshot, Line: followed.Line, Inlined: followed.Data, Timings: o.timings(start)}
	o.judgeIn(filepath.Dir(o.Path), r)
	r.Summary.Files, r.Summary.Resources = len(followed.Files), r.Snapshot.Len()
	r.addRead(followed.Diagnostics, followed.IgnoreComments())
	judged := o.rules(r)
	judged.BootstrapFacts, judged.Bootstrap, judged.Incomplete = followed.BootstrapFacts, followed.Bootstrap, followed.Incomplete
	r.Add(validate.Run(ctx, r.Snapshot, rules.All, judged))
	r.addUnused(judged, followed.Diagnostics)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the findings are incomplete
	}
	var bootstrap *bootstrapv3.Bootstrap
	if followed.Bootstrap != nil {
		bootstrap = followed.Bootstrap.Message().(*bootstrapv3.Bootstrap)
	}
	if err := r.ask(ctx, o.Rules, bootstrap, o.Path); err != nil {
		return nil, err
	}
	if o.Draft == nil {
		r.Add(takenAsBootstrap(o.Path, o.ByRoot, followed))
	}
	return r, nil
}
