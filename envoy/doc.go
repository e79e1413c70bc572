// Package envoy asks running Envoys, through their admin interface, what they
// made of the files that they read. Envoy sends no ACK and no NACK for a file: only
// its counters move. A Fleet turns these into answers:
//
//	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: admins})
//	wait, err := fleet.Begin(ctx, subscriptions, nil) // before the rename
//	…
//	outcome := wait.Await(ctx, envoy.AwaitOptions{}) // after it
//
// An Envoy has acknowledged a file when the subscription's update_success is
// above what it was before the rename and its version_text is the file's
// version_info; it has refused the file when update_rejected or update_failure is.
// Neither counter nor version_text is enough alone: version_text stays the same when a
// good file follows a bad one that followed the same good one, and /config_dump shows
// versions that Envoy refused.
//
// An Envoy that does not answer never blocks the publisher. One that is down, or does not
// answer in time, before the rename is asked once more, and does not count. One that
// starts while the AckWait lasts counts: it read the files at its start, so all of its
// counters count. One that goes down has a few seconds to come back. One that hangs
// has until the timeout: it may be busy with that very file.
//
// The names of a subscription's counters begin with a stat prefix, which Envoy makes
// from names by rules of its own. CDS, EDS and the others return it; each rule was tried
// on Envoy 1.40.0 (docs/evidence/envoy-behaviour.md).
package envoy
