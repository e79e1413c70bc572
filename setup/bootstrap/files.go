package bootstrap

import (
	"fmt"
	"path"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// files are those of an output directory.
type files struct {
	dir, suffix string
	poll        time.Duration // 0 waits for events
}

func (o EnvoyOptions) files() (sources, error) {
	suffix, err := fileSuffix(o.Format)
	switch {
	case !path.IsAbs(o.Dir):
		return nil, fmt.Errorf("the output directory %q is not an absolute path", o.Dir)
	case err != nil:
		return nil, err
	case o.PollInterval != 0 && o.PollInterval < time.Millisecond:
		return nil, fmt.Errorf("the poll interval %s is below 1ms, which is the least that Envoy takes", o.PollInterval)
	}
	return files{o.Dir, suffix, o.PollInterval}, nil
}

func (f files) dynamic() *bootstrapv3.Bootstrap_DynamicResources {
	return &bootstrapv3.Bootstrap_DynamicResources{
		CdsConfig: f.file(path.Join(f.dir, "cds"), "cds"),
		LdsConfig: f.file(path.Join(f.dir, "lds"), "lds"),
	}
}

func (f files) layer(l RuntimeLayer) (*corev3.ConfigSource, error) {
	if l.Folder == "" || strings.Contains(l.Folder, "/") {
		return nil, fmt.Errorf("runtime layer %q: %q is not the name of a folder", l.Name, l.Folder)
	}
	return f.file(path.Join(f.dir, "rtds", l.Folder), "rtds"), nil
}

// fileSuffix is by what Envoy knows the format of a file.
func fileSuffix(format string) (string, error) {
	switch format {
	case "":
		return ".json", nil
	case "json", "yaml", "pb", "pb_text":
		return "." + format, nil
	default:
		return "", fmt.Errorf("invalid format %q: use json, yaml, pb or pb_text", format)
	}
}

// file returns the config source of one file, alone in its folder: files that Envoy watches in
// one folder are read in no particular order. The folder is watched, not the
// name in it, so that any rename into the folder makes Envoy read the file
// again; it costs the same one inotify instance. A file that is polled costs none. There is no
// initial_fetch_timeout: Envoy reads the file at once, and starts no timer.
func (f files) file(folder, name string) *corev3.ConfigSource {
	source := &corev3.PathConfigSource{Path: path.Join(folder, name+f.suffix)}
	if f.poll > 0 {
		source.PollInterval = durationpb.New(f.poll)
	} else {
		source.WatchedDirectory = &corev3.WatchedDirectory{Path: folder}
	}
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: source},
	}
}
