package main

import (
	"bytes"
	"crypto/sha256"

	"github.com/urfave/cli/v2"

	"xdspub/source/load"
	"xdspub/xds"
)

func descriptorSetFlag() cli.Flag {
	return &cli.StringSliceFlag{Category: groupSource, Name: "descriptor-set", EnvVars: env("descriptor-set"), Usage: "know the message types of your own extensions by `FILE`, which protoc --include_imports --descriptor_set_out or buf build -o makes"}
}

// ownTypes are the user's own types.
type ownTypes struct {
	sets     load.DescriptorSets
	registry *xds.Registry     // nil where there are none
	digest   [sha256.Size]byte // of the files
}

// readOwnTypes reads the files of --descriptor-set. The tree's own settings file can name only files
// of the tree.
func readOwnTypes(v values) (own ownTypes, err error) {
	own.sets.Files = value(v, "descriptor-set", v.c.StringSlice)
	if _, ok := v.file["descriptor-set"]; ok {
		own.sets.Tree = v.tree
	}
	texts, err := own.sets.Read()
	if err != nil {
		return own, err
	}
	own.digest = sha256.Sum256(bytes.Join(texts, nil))
	if own.registry, err = own.sets.Registry(texts); err != nil {
		return own, &exit{exitUsage, err}
	}
	return own, nil
}
