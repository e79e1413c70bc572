package envoy

import (
	"cmp"
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
	// Paths are the files of the path subscriptions in the bootstrap, sorted: CDS, LDS, RTDS, and those of static
	// resources.
	Paths []string
	// Polled are those of Paths that Envoy polls, sorted: it needs no events of the file system for them.
	Polled []string
	// StatsMatcher means that the bootstrap excludes statistics.
	StatsMatcher bool
	// Admin is the host or the path of the socket where the admin interface listens. AdminLimited means that
	// admin.allow_paths limits what the interface answers.
	Admin        string
	AdminLimited bool
}

// maxPaths exceeds the number of Paths of any bootstrap.
const maxPaths = 10_000

// Bootstrap asks the Envoy for its bootstrap.
func (a *Admin) Bootstrap(ctx context.Context) (*Bootstrap, error) {
	s := a.session()
	defer s.close()
	return s.startedWith(ctx, "bootstrap")
}

// startedWith asks for some fields of the bootstrap. The result lacks the Paths of other fields.
func (s *session) startedWith(ctx context.Context, fields ...string) (*Bootstrap, error) {
	incarnation, dump, err := s.bootstrap(ctx, fields...)
	if err != nil {
		return nil, err
	}
	b := &Bootstrap{Incarnation: incarnation}
	stats, _ := dump["stats_config"].(map[string]any)
	_, b.StatsMatcher = stats["stats_matcher"]
	b.collectPaths(dump)
	b.readAdmin(dump)
	for _, paths := range []*[]string{&b.Paths, &b.Polled} {
		slices.Sort(*paths)
		*paths = slices.Compact(*paths)
	}
	if len(b.Paths) > maxPaths {
		return nil, s.unexpected(configDump, fmt.Sprintf("a bootstrap that names %d files, the limit is %d", len(b.Paths), maxPaths))
	}
	return b, nil
}

// Below reports whether one of the Paths may be below dir. A relative path may be below any directory.
func (b *Bootstrap) Below(dir string) bool {
	dir = path.Clean(dir)
	real := resolved(dir)
	return slices.ContainsFunc(b.Paths, func(p string) bool {
		return !path.IsAbs(p) || fspath.Within(path.Clean(p), dir) || fspath.Within(resolved(p), real)
	})
}

// bootstrapPaths has the Paths of a bootstrap in the form that includes needs.
type bootstrapPaths struct {
	relative []string // relative to the working directory of Envoy; each begins with a slash
	absolute map[string]bool
	real     map[string]bool // the absolute paths after resolved
}

// newBootstrapPaths returns the bootstrapPaths of paths. If ctx ends, the result lacks some paths.
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

// includes reports whether one of the paths leads to file, which is relative to dir. includes follows the links of
// this machine. If Envoy has another file system, only equal paths match.
func (r bootstrapPaths) includes(dir, file string) bool {
	want := path.Join(dir, file)
	return r.absolute[want] || r.real[resolved(want)] ||
		slices.ContainsFunc(r.relative, func(p string) bool { return strings.HasSuffix(p, "/"+file) })
}

// resolved returns a path without symbolic links. If this machine lacks the path, resolved returns the path as it
// is, and does not resolve parent folders: a bootstrap may name thousands of deep paths.
func resolved(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	return path.Clean(p)
}

// collectPaths adds the files of all path subscriptions in a part of a bootstrap to Paths and Polled. It finds config
// sources by the names of their fields, since other messages have a field path, too, such as access logs.
func (b *Bootstrap) collectPaths(value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			b.collectPaths(v)
		}
	case map[string]any:
		for key, v := range value {
			switch v := v.(type) {
			case string:
				if file, ok := strings.CutPrefix(v, "file://"); ok && strings.HasSuffix(key, "_resources_locator") {
					b.Paths = append(b.Paths, file)
				}
			case map[string]any: // a config source with the deprecated field path, or a path_config_source
				if file, ok := v["path"].(string); ok && isConfigSource(key) {
					b.Paths = append(b.Paths, file)
					if _, polled := v["poll_interval"]; polled {
						b.Polled = append(b.Polled, file)
					}
				}
			}
			b.collectPaths(v)
		}
	}
}

// readAdmin reads the field admin of a bootstrap.
func (b *Bootstrap) readAdmin(dump map[string]any) {
	admin, _ := dump["admin"].(map[string]any)
	paths, _ := admin["allow_paths"].([]any)
	b.AdminLimited = len(paths) > 0
	address, _ := admin["address"].(map[string]any)
	socket, _ := address["socket_address"].(map[string]any)
	pipe, _ := address["pipe"].(map[string]any)
	host, _ := socket["address"].(string)
	path, _ := pipe["path"].(string)
	b.Admin = diag.Clip(cmp.Or(host, path), diag.MaxWord)
}

// isConfigSource reports whether a field holds a config source or a path_config_source.
func isConfigSource(field string) bool {
	switch field {
	case "cds_config", "lds_config", "rtds_config", "eds_config", "sds_config":
		return true
	}
	return strings.HasSuffix(field, "config_source")
}

const configDump = "/config_dump"

// bootstrap returns the Incarnation of the answering process, and some fields of its bootstrap.
func (s *session) bootstrap(ctx context.Context, fields ...string) (Incarnation, map[string]any, error) {
	body, err := s.get(ctx, configDump, url.Values{
		"mask": {strings.Join(append(fields, "last_updated"), ",")},
		// Without name_regex, Envoy dumps all resources before it applies the mask.
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

// process returns the answering process. It asks for the bootstrap and the /server_info only if the process did not
// answer the last question. A process older than the last process means that several processes answer in turn; the
// error is then an *UnstableError.
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

// serverInfo is the needed part of /server_info.
type serverInfo struct {
	drainTime time.Duration // how long listeners drain
	epoch     int           // the number of hot restarts before the process
	started   time.Time     // to the second, by the clock of this machine; zero if unknown
	version   string        // such as 1.40.0; empty if unknown
	once      bool          // the command line forbids hot restarts
}

// serverInfo asks for /server_info.
func (s *session) serverInfo(ctx context.Context) (serverInfo, error) {
	const path = "/server_info"
	body, err := s.get(ctx, path, nil, maxDump)
	if err != nil {
		return serverInfo{}, err
	}
	var says struct {
		Version string `json:"version"`
		Uptime  string `json:"uptime_current_epoch"`
		Options struct {
			DrainTime string `json:"drain_time"`
			Epoch     int    `json:"restart_epoch"`
			Once      bool   `json:"disable_hot_restart"`
		} `json:"command_line_options"`
	}
	if err := json.Unmarshal(body, &says); err != nil {
		return serverInfo{}, s.unexpected(path, sample(body))
	}
	info := serverInfo{epoch: says.Options.Epoch, once: says.Options.Once}
	if parts := strings.Split(says.Version, "/"); len(parts) > 1 { // commit/version/state of the tree/…
		info.version = diag.Clip(parts[1], diag.MaxWord)
	}
	if info.drainTime, err = time.ParseDuration(says.Options.DrainTime); err != nil {
		return serverInfo{}, s.unexpected(path, sample(body))
	}
	if up, err := time.ParseDuration(says.Uptime); err == nil {
		info.started = time.Now().Add(-up)
	}
	return info, nil
}

// stillRuns reports whether the answering process is surely the last process, and has that incarnation. stillRuns
// compares the start to the second, because an Envoy never starts two processes within a second. So it costs Envoy
// less than process.
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

// readsBelow returns a *NotSubscribedError if no path subscription of the bootstrap reads a file below dir. Static
// resources can be many, so readsBelow asks for them only if CDS, LDS and RTDS read no file there.
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

// Warming returns the names of the warming dynamic clusters, sorted. If a warming cluster is an update, Envoy still
// uses the older version of the cluster.
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
