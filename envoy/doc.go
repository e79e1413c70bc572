// Package envoy asks running Envoys, through their admin interface, whether they accepted the files that they
// read. Envoy sends no ACK and no NACK for a file, but its counters move. A Fleet turns the counters into
// answers:
//
//	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: admins})
//	wait, err := fleet.Begin(ctx, subscriptions, nil)       // before the rename
//	…
//	outcome := wait.Await(ctx, envoy.AwaitOptions{})        // after the rename
//
// An Envoy has acknowledged a file when the subscription's update_success has grown since before the rename
// and its version_text is the file's version_info. An Envoy has refused the file when update_rejected or
// update_failure has grown. Neither a counter nor version_text suffices alone: version_text stays the same
// when a good file follows a bad file that followed the same good file, and /config_dump shows versions that
// Envoy refused.
//
// An unresponsive Envoy never blocks the publisher. An Envoy that is down or too slow before the rename is asked
// once more after it, and counts only if it answers then. An Envoy that starts while the AckWait lasts counts: it
// read the files at its start, so all of its counters count. An Envoy that goes down has a few seconds to come
// back. An Envoy that hangs has until the timeout, because the new file may keep it busy.
//
// The names of a subscription's counters begin with a stat prefix, which Envoy derives from names by its own
// rules. CDS, EDS and the other functions return the prefix. Each rule was tried on Envoy 1.40.0
// (docs/evidence/envoy-behaviour.md).
package envoy
