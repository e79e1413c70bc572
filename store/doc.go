// Package store keeps the published snapshots of a fleet in etcd, so that many machines get what one machine has
// published. One writer moves the head of a target; followers read the head, and the changes that they lack.
//
//	/PREFIX/heads/TARGET                 the Head: which resources are out
//	/PREFIX/steps/TARGET/SERIAL          the Step that led to a head: the change, and what it changes
//	/PREFIX/objects/TARGET/HASH/NUMBER   the bytes of a change (history.Tree.Pack), in chunks
//	/PREFIX/writers/TARGET               the Term of the writer, with its lease
//	/PREFIX/machines/TARGET/MACHINE      the Ack of a machine, with its lease
//
// A source tree without targets has the target "-".
//
// # One writer
//
// The key of the writer has a lease. Each transaction of the writer requires that the writer has made the key, and that
// no other process has moved the head. So a suspended writer can't move the head once its lease is over. A second
// writer waits until the key is gone.
//
// # Order
//
// Serials grow with each head: the serial is the time in milliseconds, or one more than the last serial if that is
// larger. So clocks may differ. If a backup of the store is restored, the head has a smaller serial than a follower
// has seen, and the follower keeps what it has until a writer publishes again. Each term of a writer begins with a new
// serial.
//
// # Trust
//
// Followers trust no byte of the store. Each read is bounded, the bytes of a change have the hash that names them, and
// the resources after a change have the hash in the head.
package store
