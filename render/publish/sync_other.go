//go:build !linux

package publish

import (
	"errors"
	"math"
)

// Many exceeds any number of files, because only Linux flushes one file system and waits for the flush.
func (osDisk) Many() int { return math.MaxInt }

func (osDisk) SyncAll(folder) error { return errors.ErrUnsupported }
