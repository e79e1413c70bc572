package oracle

import (
	"os"
	"slices"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/proto"
)

// identity holds what a verdict depends on.
type identity struct {
	snapshot  string
	bootstrap *bootstrapv3.Bootstrap
	files     []stamp // the program, and the files that resources name
}

// stamp holds the metadata by which a changed file is noticed.
type stamp struct {
	path    string
	size    int64
	changed time.Time // zero if the file does not exist
}

// identify returns the identity of a question about c. files are the files that resources of c name.
func identify(program string, c Candidate, files []string) identity {
	id := identity{snapshot: c.Snapshot.ID(), bootstrap: c.Bootstrap, files: []stamp{stampOf(program)}}
	slices.Sort(files)
	for _, name := range slices.Compact(files) {
		id.files = append(id.files, stampOf(name))
	}
	return id
}

// holds reports whether a question about c has the identity i.
func (i identity) holds(program string, c Candidate) bool {
	var files []string
	for _, s := range i.files[1:] {
		files = append(files, s.path)
	}
	is := identify(program, c, files)
	return is.snapshot == i.snapshot && proto.Equal(is.bootstrap, i.bootstrap) && slices.Equal(is.files, i.files)
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{path: path}
	}
	return stamp{path, info.Size(), info.ModTime()}
}
