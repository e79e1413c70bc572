package transition

import (
	"fmt"

	"xdspub/xds"
)

var sharedSettingsChanged = &Rule{
	Code: "shared-settings-changed",
	Doc: `A running cache, file manager or bandwidth bucket changes its settings.

Some objects belong to the whole Envoy, and all users of a name share them: the DNS cache of a
dynamic forward proxy, an async file manager by its id, the HTTP cache in a directory, the bucket
of bandwidth_share by its id. The running user keeps the object while the new one is added, even
under another name, and while it drains. Envoy rejects other settings ("config specified DNS cache
'x' with different settings", "AsyncFileManager mismatched config", "mismatched
FileSystemHttpCacheConfig with same path", "to have different config you must use a distinct
bucket_id"). Every detail counts: writing out a default makes another setting. Only redis_proxy
is accepted with other settings, which have no effect (a warning).`,
	Run: func(p *Pass) error {
		asked, err := singletonUses(func(t *xds.Type) ([]*xds.Resource, error) { return p.New.Of(t), nil })
		if err != nil || len(asked) == 0 {
			return err // nothing uses a singleton: the published resources need not be read
		}
		published, err := singletonUses(p.Old.Of)
		if err != nil {
			return err
		}
		running := make(map[xds.Singleton]singletonUse)
		for _, s := range published {
			if _, again := running[s.Singleton]; !again {
				running[s.Singleton] = s
			}
		}
		for _, s := range asked {
			r, ok := running[s.Singleton]
			if !ok || r.Settings == s.Settings {
				continue
			}
			f := Finding{
				Resource: s.in, Path: s.Path, Warning: s.Tolerated,
				Message: fmt.Sprintf("%s has other settings in running %s: Envoy would reject the new ones", s.Singleton, r.in.Key),
				Help:    "write a new name in all places that share it",
			}
			if s.Tolerated {
				f.Message = fmt.Sprintf("%s has other settings in running %s: the new ones would have no effect", s.Singleton, r.in.Key)
			}
			p.Report(f)
		}
		return nil
	},
}
