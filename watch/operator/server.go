package operator

import (
	"errors"

	"xdspub/render/publish"
)

// serverRecord marks the directory of serve --state, which has the history and the decisions about a server without an
// output directory.
const serverRecord = "server.json"

// server is the record serverRecord.
type server struct {
	Layout int `json:"layout"`
}

// IsServer reports whether the directory out is marked as the directory of serve --state.
func IsServer(out string) bool {
	var s server
	check := func() error {
		if s.Layout != layout {
			return errors.New("another xdspub has written it")
		}
		return nil
	}
	is, err := publish.ReadRecord(out, serverRecord, &s, check, "the next xdspub serve replaces the file")
	return is && err == nil
}

// MarkServer marks an open directory as the directory of serve --state.
func MarkServer(dir *publish.Dir) error {
	if IsServer(dir.Path()) {
		return nil
	}
	return dir.PutRecord(serverRecord, server{layout})
}
