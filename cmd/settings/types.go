package settings

import (
	"bytes"
	"crypto/sha256"

	"xdspub/source/load"
	"xdspub/xds"
)

// Types are the message types of the user's own extensions.
type Types struct {
	Files    []string
	Registry *xds.Registry     // nil for none
	Digest   [sha256.Size]byte // of the files
}

// WithTypes returns the settings with the types of --descriptor-set.
func (s *Settings) WithTypes() (*Settings, error) {
	of := *s
	err := of.readTypes()
	return &of, err
}

// readTypes reads the files of --descriptor-set. The settings file of a tree can name only files of the tree.
func (s *Settings) readTypes() error {
	sets := load.DescriptorSets{Files: s.DescriptorSet.Value}
	if s.DescriptorSet.InFile() {
		sets.Tree = s.tree
	}
	texts, err := sets.Read()
	if err != nil {
		return err
	}
	s.Types = Types{Files: sets.Files, Digest: sha256.Sum256(bytes.Join(texts, nil))}
	if s.Types.Registry, err = sets.Registry(texts); err != nil {
		return &UsageError{err}
	}
	return nil
}
