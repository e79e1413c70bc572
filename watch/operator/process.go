package operator

import (
	"crypto/rand"
	"time"
)

// process is an id of this process. began is the start of this process.
var process, began = "process " + rand.Text(), time.Now()

// uptimeOfProcess returns the id of this process, and the time since its start.
func uptimeOfProcess() (start string, up time.Duration) { return process, time.Since(began) }
