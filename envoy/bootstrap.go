package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/internal/fspath"
)

// Bootstrap is the part of an Envoy's bootstrap that this package needs.
type Bootstrap struct {
	Incarnation Incarnation
	// Paths are the files that the bootstrap names, sorted: those of CDS, LDS and RTDS,
	// and those of static resources.
	Paths []string
	// StatsMatcher means that the bootstrap excludes statistics.
	StatsMatcher bool
}

// maxPaths is beyond the files that a bootstrap names: what Envoy watches of itself is
// CDS, LDS, layers of the runtime and what static resources ask for.
const maxPaths = 10_000

// Bootstrap requests the bootstrap of the Envoy.
func (a *Admin) Bootstrap(ctx context.Context) (*Bootstrap, error) {
	s := a.session()
	defer s.close()
	return s.startedWith(ctx, "bootstrap")
}

// startedWith returns what some fields of the bootstrap hold.
func (s *session) startedWith(ctx context.Context, fields ...string) (*Bootstrap, error) {
	incarnation, dump, err := s.bootstrap(ctx, fields...)
	if err != nil {
		return nil, err
	}
	b := &Bootstrap{Incarnation: incarnation}
	stats, _ := dump["stats_config"].(map[string]any)
	_, b.StatsMatcher = stats["stats_matcher"]
	collectPaths(dump, &b.Paths)
	slices.Sort(b.Paths)
	b.Paths = slices.Compact(b.Paths)
	if len(b.Paths) > maxPaths {
		return nil, s.unexpected(configDump, fmt.Sprintf("a bootstrap that names %d files, the limit is %d", len(b.Paths), maxPaths))
	}
	return b, nil
}

// Below reports whether one of the Paths is below dir, or may be: a relative path may be.
func (b *Bootstrap) Below(dir string) bool {
	dir = path.Clean(dir)
	real := resolved(dir)
	return slices.ContainsFunc(b.Paths, func(p string) bool {
		return !path.IsAbs(p) || fspath.Within(path.Clean(p), dir) || fspath.Within(resolved(p), real)
	})
}

// bootstrapPaths holds the paths that a bootstrap names, to look files up in.
type bootstrapPaths struct {
	relative []string // to where Envoy was started
	absolute map[string]bool
	real     map[string]bool // without this machine's links
}

// newBootstrapPaths resolves paths until ctx ends.
func newBootstrapPaths(ctx context.Context, paths []string) bootstrapPaths {
	r := bootstrapPaths{absolute: make(map[string]bool, len(paths)), real: make(map[string]bool, len(paths))}
	for _, p := range paths {
		switch {
		case ctx.Err() != nil:
			return r
		case path.IsAbs(p):
			r.absolute[path.Clean(p)] = true
			r.real[resolved(p)] = true
		default:
			r.relative = append(r.relative, "/"+path.Clean(p))
		}
	}
	return r
}

// includes reports whether one of the paths leads to a file below dir. includes follows the links of this
// machine. If Envoy has another file system, only equal paths match.
func (r bootstrapPaths) includes(dir, file string) bool {
	want := path.Join(dir, file)
	return r.absolute[want] || r.real[resolved(want)] ||
		slices.ContainsFunc(r.relative, func(p string) bool { return strings.HasSuffix(p, "/"+file) })
}

// resolved returns a path without links if this machine has the path. resolved does not resolve parent
// folders, because the admin interface may name thousands of deep paths.
func resolved(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	return path.Clean(p)
}

// collectPaths walks the bootstrap for config sources that are paths, by the names
// of the fields that hold one. An access log has a path, too.
func collectPaths(value any, paths *[]string) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			collectPaths(v, paths)
		}
	case map[string]any:
		for key, v := range value {
			switch v := v.(type) {
			case string:
				if file, ok := strings.CutPrefix(v, "file://"); ok && strings.HasSuffix(key, "_resources_locator") {
					*paths = append(*paths, file)
				}
			case map[string]any: // in the field that is deprecated, or in path_config_source
				if file, ok := v["path"].(string); ok && isConfigSource(key) {
					*paths = append(*paths, file)
				}
			}
			collectPaths(v, paths)
		}
	}
}

func isConfigSource(field string) bool {
	switch field {
	case "cds_config", "lds_config", "rtds_config", "eds_config", "sds_config":
		return true
	}
	return strings.HasSuffix(field, "config_source")
}

const configDump = "/config_dump"

// bootstrap asks for fields of the bootstrap, and when it was loaded.
func (s *session) bootstrap(ctx context.Context, fields ...string) (Incarnation, map[string]any, error) {
	body, err := s.get(ctx, configDump, url.Values{
		"mask": {strings.Join(append(fields, "last_updated"), ",")},
		// Envoy makes the dump of all else, too, before it takes the fields out of it.
		"name_regex": {"^$"},
	}, maxDump)
	if err != nil {
		return "", nil, err
	}
	var dump struct {
		Configs []struct {
			Bootstrap   map[string]any
			LastUpdated Incarnation `json:"last_updated"`
		}
	}
	if err := json.Unmarshal(body, &dump); err != nil || len(dump.Configs) != 1 || dump.Configs[0].LastUpdated.time().IsZero() {
		return "", nil, s.unexpected(configDump, sample(body))
	}
	return dump.Configs[0].LastUpdated, dump.Configs[0].Bootstrap, nil
}

// process asks which process answers and, if the process is new, for its bootstrap and its /server_info. A
// process older than the previous process was there all the time; the error is then an *UnstableError.
func (s *session) process(ctx context.Context) (process, error) {
	incarnation, _, err := s.bootstrap(ctx)
	if err != nil {
		return process{}, err
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.incarnation == incarnation {
		return last, nil
	}
	b, err := s.startedWith(ctx, "bootstrap.stats_config.stats_matcher", "bootstrap.dynamic_resources", "bootstrap.layered_runtime")
	if err != nil {
		return process{}, err
	}
	p := process{incarnation: b.Incarnation, matcher: b.StatsMatcher, paths: b.Paths}
	if p.serverInfo, err = s.serverInfo(ctx); err != nil {
		return process{}, err
	}
	s.mu.Lock()
	s.last = p
	s.mu.Unlock()
	if p.incarnation.time().Before(last.incarnation.time()) {
		return process{}, &UnstableError{URL: s.url}
	}
	return p, nil
}

// serverInfo is what /server_info says of a process.
type serverInfo struct {
	drainTime time.Duration // how long listeners drain
	epoch     int           // hot restarts before it
	started   time.Time     // to the second; zero if unknown
}

func (s *session) serverInfo(ctx context.Context) (serverInfo, error) {
	const path = "/server_info"
	body, err := s.get(ctx, path, nil, maxDump)
	if err != nil {
		return serverInfo{}, err
	}
	var says struct {
		Uptime  string `json:"uptime_current_epoch"`
		Options struct {
			DrainTime string `json:"drain_time"`
			Epoch     int    `json:"restart_epoch"`
		} `json:"command_line_options"`
	}
	if err := json.Unmarshal(body, &says); err != nil {
		return serverInfo{}, s.unexpected(path, sample(body))
	}
	info := serverInfo{epoch: says.Options.Epoch}
	if info.drainTime, err = time.ParseDuration(says.Options.DrainTime); err != nil {
		return serverInfo{}, s.unexpected(path, sample(body))
	}
	if up, err := time.ParseDuration(says.Uptime); err == nil {
		info.started = time.Now().Add(-up)
	}
	return info, nil
}

// stillRuns reports whether the answering process is surely a known process. stillRuns costs Envoy less than
// process: an Envoy never starts two processes within a second.
func (s *session) stillRuns(ctx context.Context, incarnation Incarnation) bool {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.incarnation != incarnation || last.started.IsZero() {
		return false
	}
	now, err := s.serverInfo(ctx)
	return err == nil && !now.started.IsZero() && now.epoch == last.epoch && now.started.Sub(last.started).Abs() <= time.Second
}

// readsBelow returns a *NotSubscribedError if the Envoy reads no file below dir. Static resources can be many,
// so readsBelow asks for them only if nothing else is below dir.
func (a *Admin) readsBelow(ctx context.Context, dir string) error {
	s := a.session()
	defer s.close()
	b, err := s.startedWith(ctx, "bootstrap.dynamic_resources", "bootstrap.layered_runtime")
	if err == nil && !b.Below(dir) {
		b, err = s.startedWith(ctx, "bootstrap")
	}
	if err != nil || b.Below(dir) {
		return err
	}
	return &NotSubscribedError{URL: a.url, Dir: dir, Reads: b.Paths}
}

// Warming returns the names of the warming dynamic clusters, sorted. A cluster that is an update has an older
// version, which serves.
func (a *Admin) Warming(ctx context.Context) ([]string, error) {
	s := a.session()
	defer s.close()
	body, err := s.get(ctx, configDump, url.Values{"resource": {"dynamic_warming_clusters"}, "mask": {"cluster.name"}}, maxDump)
	if err != nil {
		return nil, err
	}
	var dump struct {
		Configs []struct {
			Cluster struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &dump); err != nil {
		return nil, a.unexpected(configDump, sample(body))
	}
	var names []string
	for _, c := range dump.Configs {
		names = append(names, diag.Clip(c.Cluster.Name, diag.MaxWord))
	}
	slices.Sort(names)
	return names, nil
}
