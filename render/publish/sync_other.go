//go:build !linux

package publish

import (
	"errors"
	"math"
)

// Many is more than there are: only Linux flushes one file system, and waits for it.
func (osDisk) Many() int { return math.MaxInt }

func (osDisk) SyncAll(folder) error { return errors.ErrUnsupported }
