// Package envoy asks running Envoys, through their admin interface, what they
// made of the files that they read. Envoy answers no file: there is no ACK and no
// NACK, only counters that move. A Fleet turns these into answers:
//
//	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: admins})
//	round, err := fleet.Begin(ctx, subscriptions) // before the rename
//	…
//	outcome := round.Await(ctx, envoy.AwaitOptions{}) // after it
//
// An Envoy has acknowledged a file when the subscription's update_success is
// above what it was before the rename and its version_text is the file's
// version_info; it has refused the file when update_rejected or update_failure is.
// Neither alone will do: version_text says the same throughout when a good file
// follows a bad one that followed the same good one, and /config_dump shows
// versions that were never taken.
//
// The publisher is never held up by an Envoy that is not there: one that is down or
// silent before a round is asked once more, and does not count in it. One that starts
// within the round is taken in; it has read the files at its start, so all that it has
// counted counts. One that goes down is waited for a few seconds, and one that hangs
// until the time is up: it may be at work on just that file.
//
// The counters of a subscription stand below a root that Envoy makes of names in
// its own way; CDS, EDS and so on say what it is. Each of these ways was tried
// on Envoy 1.40.0 (docs/envoy-behaviour.md).
package envoy
