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

// files are the config sources for an output directory.
type files struct {
	dir, suffix string
	poll        time.Duration // 0 means that Envoy waits for events
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

// fileSuffix returns the suffix by which Envoy recognizes a format.
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

// file returns the config source of a file. Each file has its own folder, because Envoy reads changed files of one
// folder in no particular order. Envoy watches the folder and not the file: then each rename into the folder makes
// Envoy read the file again. Both kinds of watches take one inotify instance; polling takes none. The config source
// has no initial_fetch_timeout, because Envoy reads a file at once.
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
