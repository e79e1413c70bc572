package published

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/xds"
)

// Files returns the files at the places where this program publishes files, by path below the output
// directory. Files ignores every other file and folder: another owner's files are never removed, and some,
// such as the lost+found of a volume, are unreadable.
func Files(dir string, format *render.Format) (map[string]publish.Info, error) {
	all := make(map[string]publish.Info)
	for top, base := range folders(format) {
		files, err := publish.Files(dir, top, base)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// folders are those of the output directory that published files stand below, each with
// the base name of its files.
func folders(format *render.Format) map[string]string {
	folders := make(map[string]string, len(xds.Types))
	for _, t := range xds.Types {
		folders[strings.ToLower(t.API)] = path.Base(format.Path(t, "x"))
	}
	return folders
}

// IsLayer reports whether a published file is that of a runtime layer.
func IsLayer(file string) bool {
	return strings.HasPrefix(file, strings.ToLower(xds.Runtime.API)+"/")
}

// AsFile returns a rendered file as it is published.
func AsFile(f render.File) publish.File {
	return publish.File{Path: f.Path, Data: f.Data, Version: f.Version, Secret: f.Secret}
}

// Layers returns the names of the runtime layers that there are published files for,
// in the order of their folders, and what is wrong with the files that can't be
// read. A copy of a folder under another name is no layer.
func (r *Reader) Layers(files []string) (names, damaged []string, err error) {
	for _, f := range files {
		if !IsLayer(f) {
			continue
		}
		out, err := r.readBack(f)
		if err != nil {
			return nil, nil, err
		}
		if out.damage != "" {
			damaged = append(damaged, fmt.Sprintf("%s: %s", f, out.damage))
		}
		for _, res := range out.resources {
			if r.options.Format.Path(xds.Runtime, res.Name) == f {
				names = append(names, res.Name)
			}
		}
	}
	return names, damaged, nil
}

// RuntimeLayers returns the names of the runtime layers that an output directory with files of a format holds,
// so that a bootstrap can name them. An unreadable layer is an error, because Envoy would lack the layer until
// its next restart.
func RuntimeLayers(dir string, format *render.Format) ([]string, error) {
	files, err := Files(dir, format)
	if err != nil {
		return nil, err
	}
	names, damaged, err := New(Options{Dir: dir, Format: format}).Layers(slices.Sorted(maps.Keys(files)))
	if err == nil && len(damaged) > 0 {
		err = fmt.Errorf("read %s: publish again first", strings.Join(damaged, "; "))
	}
	return names, err
}
