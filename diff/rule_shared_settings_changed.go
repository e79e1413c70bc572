package diff

import (
	"fmt"

	"xdspub/xds"
)

var sharedSettingsChanged = &Rule{
	Code: "shared-settings-changed",
	Doc: `A running cache, file manager or bandwidth bucket changes its settings.

Some things belong to the whole Envoy, and everyone who names one shares it: the DNS cache
of a dynamic forward proxy, the manager of asynchronous files by its id, the HTTP cache in
a directory, the bucket of bandwidth_share by its id. What runs holds it while the new
one comes, be it under another name, and while it drains; Envoy refuses other settings
("config specified DNS cache 'x' with different settings", "AsyncFileManager mismatched
config", "mismatched FileSystemHttpCacheConfig with same path", "to have different config
you must use a distinct bucket_id"), in however small a thing: a default that is written
out is another setting. Only redis_proxy is taken with other settings (a warning).`,
	Run: func(p *Pass) error {
		asked, err := singletonUses(func(t *xds.Type) ([]*xds.Resource, error) { return p.New.Of(t), nil })
		if err != nil || len(asked) == 0 {
			return err // what runs need not be read
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
				Message: fmt.Sprintf("%s runs with other settings, in %s: Envoy would refuse these", s.Singleton, r.in.Key),
				Help:    "name another one, in all places that share it",
			}
			if s.Tolerated {
				f.Message = fmt.Sprintf("%s runs with other settings, in %s: these would not be in effect", s.Singleton, r.in.Key)
			}
			p.Report(f)
		}
		return nil
	},
}
