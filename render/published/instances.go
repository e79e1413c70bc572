package published

import (
	"maps"
	"path"
	"slices"
	"strings"

	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/xds"
)

// Instances returns the number of inotify instances that an Envoy takes for the published files: one for each path
// subscription of its bootstrap and of the published resources. Draining listeners are not counted.
func (s *State) Instances() (int, error) {
	taken := make(map[string]bool)
	for _, t := range xds.Types {
		resources, err := s.Of(t)
		if err != nil {
			return 0, err
		}
		for _, name := range render.Watches(resources) {
			taken[name] = true
		}
	}
	return len(taken) + len(slices.DeleteFunc(slices.Clone(s.Files), func(f string) bool { return !ofBootstrap(f) })), nil
}

// ofBootstrap reports whether bootstraps subscribe to a published file.
func ofBootstrap(file string) bool {
	return IsLayer(file) || slices.ContainsFunc(xds.Entrypoints, func(t *xds.Type) bool {
		return strings.HasPrefix(file, strings.ToLower(t.API)+"/")
	})
}

// Polled returns the published files that Envoy polls for the published clusters and listeners, and needs no events
// for.
func (s *State) Polled() map[string]bool {
	polled := make(map[string]bool)
	for _, r := range slices.Concat(s.Clusters, s.Listeners) {
		for _, sub := range r.Facts().Subscriptions {
			if file, ok := s.reader.File(sub); ok && sub.Source.GetPathConfigSource().GetPollInterval() != nil {
				polled[file] = true
			}
		}
	}
	return polled
}

// UnusedFolders returns the folders of resources that are no longer published, as paths below the output directory.
func (s *State) UnusedFolders() ([]string, error) {
	used := make(map[string]bool)
	for _, names := range [][]string{s.Files, s.Manifest.Files.Names()} {
		for _, file := range names {
			used[path.Dir(file)] = true
		}
	}
	var list []string
	for _, top := range slices.Sorted(maps.Keys(folders(s.reader.options.Format))) {
		empty, err := publish.EmptyFolders(s.reader.options.Dir, top)
		if err != nil {
			return nil, err
		}
		list = append(list, slices.DeleteFunc(empty, func(folder string) bool { return used[folder] })...)
	}
	return list, nil
}
