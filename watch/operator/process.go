package operator

import (
	"crypto/rand"
	"time"
)

// process identifies this process, and began is the time of its start.
var process, began = "process " + rand.Text(), time.Now()

// uptimeOfProcess returns the id of this process, and the time since its start.
func uptimeOfProcess() (start string, up time.Duration) { return process, time.Since(began) }
