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
// The key of the writer has a lease. Each transaction of a writer requires that the key is still the key of this
// writer. A transaction that moves the head also requires that no other process has moved the head. So a suspended
// writer changes nothing after its lease. A second writer waits until the key is gone.
//
// # Order
//
// Serials grow with each head: the serial is the time in milliseconds, or one more than the last serial if that is
// larger. So clocks may differ. If a backup of the store is restored, the head has a smaller serial than a follower has
// seen, and the follower keeps its resources until a writer publishes again. A writer gives the head a new serial if
// the head is not the last head of this writer: after the start of the writer, and after the restore.
//
// # Trust
//
// Followers trust no byte of the store. Each read is bounded. A follower refuses the bytes of a change that do not have
// the hash in their key, and the resources that do not have the hash in the head.
//
// With age keys (Options.AgeKeys) changes are encrypted, and heads and steps have names in place of hashes. Followers
// then refuse a plain change. Nothing proves who has written a change: the encryption hides resources, and signs none.
package store
