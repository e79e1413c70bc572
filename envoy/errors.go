package envoy

import "fmt"

// DownError tells that there is no Envoy: nobody listens, or whoever did hung up.
type DownError struct {
	URL string
	Err error
}

func (e *DownError) Error() string { return fmt.Sprintf("envoy %s: is down: %v", e.URL, e.Err) }

// Unwrap gives the cause.
func (e *DownError) Unwrap() error { return e.Err }

// SilentError tells that there is something that takes connections and gives no
// answer in time.
type SilentError struct {
	URL string
	Err error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("envoy %s: gives no answer: %v", e.URL, e.Err)
}

// Unwrap gives the cause.
func (e *SilentError) Unwrap() error { return e.Err }

// NotEnvoyError tells that what answers can't be an Envoy's admin interface, or
// not one that lets us in.
type NotEnvoyError struct {
	URL  string
	Path string // what was asked for
	Saw  string // what came instead
}

func (e *NotEnvoyError) Error() string {
	return fmt.Sprintf("envoy %s: is no admin interface of an Envoy: %s gave %s", e.URL, e.Path, e.Saw)
}

// UnstableError tells that several processes answer at one address.
type UnstableError struct {
	URL string
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("envoy %s: is unstable: another process answers each time: if this is a balancer before several Envoys, give the admin interface of each of them its own --envoy-admin; if it is one Envoy, it restarts all the time, and its log says why", e.URL)
}

// HiddenError tells that the stats_matcher of an Envoy's bootstrap leaves out
// statistics without which it can't be told what becomes of a file.
type HiddenError struct {
	URL   string
	Stats []string
}

func (e *HiddenError) Error() string {
	return fmt.Sprintf("envoy %s: the stats_matcher of its bootstrap hides %s: without them nobody can tell whether it takes a file; let it include %s",
		e.URL, few(e.Stats), neededStats)
}

// ForeignError tells that an Envoy reads no file of the output directory.
type ForeignError struct {
	URL   string
	Dir   string   // the output directory as Envoys see it
	Reads []string // what it reads instead, sorted
}

func (e *ForeignError) Error() string {
	reads := "no files at all"
	if len(e.Reads) > 0 {
		reads = clip(few(e.Reads), maxText)
	}
	return fmt.Sprintf("envoy %s: reads nothing below %s: its bootstrap names %s", e.URL, e.Dir, reads)
}
