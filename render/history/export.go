package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/envoy/envoyapi"
	"xdspub/render"
	"xdspub/source/load"
	"xdspub/xds"
)

// mostInFile is the number of resources in a file of an exported source tree.
const mostInFile = 5_000

// Export writes the resources of an entry as a source tree into the folder dir, which has to be missing or empty, and
// returns the number of files. Export reads the tree back: the tree has the snapshot id Entry.Content. g has the types
// in the resources. Only the user can read the files, because they may have secrets.
func (h *History) Export(ctx context.Context, id, dir string, g *xds.Registry) (files int, err error) {
	item, err := h.Find(id)
	if err != nil {
		return 0, err
	}
	s, err := h.Load(item.ID, g)
	if err != nil {
		return 0, err
	}
	response, err := h.Document(item.ID)
	if err != nil {
		return 0, err
	}
	if err := makeEmpty(dir); err != nil {
		return 0, err
	}
	all, part := s.All(), 0 // in the order of the response
	for first, end := 0, 0; first < len(all); first = end {
		if part++; first > 0 && all[first-1].Type != all[first].Type {
			part = 1
		}
		for end = first + 1; end < len(all) && all[end].Type == all[first].Type && end-first < mostInFile; {
			end++
		}
		name := strings.ToLower(all[first].Type.API)
		if part > 1 {
			name = fmt.Sprintf("%s-%d", name, part)
		}
		of := &discoveryv3.DiscoveryResponse{Resources: response.Resources[first:end]}
		if err := writeFile(filepath.Join(dir, name), g, of, all[first:end]); err != nil {
			return files, err
		}
		files++
	}
	return files, checkExport(ctx, dir, g, item)
}

// makeEmpty makes a folder that only the user can read. An existing folder has to be empty.
func makeEmpty(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	list, err := os.ReadDir(dir)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%s is not empty: name a folder that does not exist", dir)
	}
	return err
}

// writeFile writes resources of one type as YAML, or as JSON if YAML can't carry a value. base is the path without a
// suffix.
func writeFile(base string, g *xds.Registry, response *discoveryv3.DiscoveryResponse, resources []*xds.Resource) error {
	format := render.YAML
	data, list := format.Convert(g, response, resources)
	if list.HasErrors() {
		format = render.JSON
		data, list = format.Convert(g, response, resources)
	}
	if list.HasErrors() {
		return errors.New(list[0].Message)
	}
	f, err := os.OpenFile(base+"."+format.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// checkExport reads an exported source tree.
func checkExport(ctx context.Context, dir string, g *xds.Registry, item Item) error {
	var latest *envoyapi.Version // nil means the latest
	r, err := load.New(load.Options{Envoy: latest.With(g), Streams: true}).Load(ctx, dir)
	if err != nil {
		return err
	}
	if is := r.Snapshot().ID(); is != item.Content {
		reason := ""
		if r.Diagnostics.HasErrors() {
			reason = ": " + r.Diagnostics[0].Message
		}
		return fmt.Errorf("the tree in %s is not what was published: it has the snapshot id %s, and %s was published%s", dir, is, item.Content, reason)
	}
	return nil
}
