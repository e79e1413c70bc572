// Package store keeps the published snapshots of a fleet in etcd, so that many machines get what one machine has
// published. One writer moves the head of a target; followers read the head, and the changes that they lack.
//
//	/PREFIX/heads/TARGET                 the Head: which resources are out
//	/PREFIX/steps/TARGET/SERIAL          the Step that led to a head: the change, and what it changes
//	/PREFIX/objects/TARGET/HASH/NUMBER   the bytes of a change (history.Tree.Pack), in chunks
//	/PREFIX/writers/TARGET               the Term of the writer, with its lease
//	/PREFIX/machines/TARGET/MACHINE      the Ack of a machine, with its lease
//	/PREFIX/orders/TARGET/KIND           the Order of an operator
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
// # Rollouts
//
// During a rollout, the head has two sets of resources, the base and the candidate. The steps lead to the base first,
// and then to the candidate. Each machine finds its wave (package waves) by its own name and labels, and takes the
// candidate if its wave is open. So a wave costs one write. To take a candidate back, the writer writes the step from
// the candidate to the base, and gives the base a later serial.
//
// The state of a rollout is a part of the head, and moves with the head in one transaction. So the next writer
// continues the rollout of a writer that has ended; the bake time begins again. A changed source tree supersedes the
// candidate: all machines outside of the first wave get the base until their waves open.
//
// # Trust
//
// Followers trust no byte of the store. Each read is bounded. A follower refuses the bytes of a change that do not have
// the hash in their key, and the resources that do not have the hash in the head.
//
// With age keys (Options.AgeKeys) changes are encrypted, and heads and steps have names in place of hashes. Followers
// then refuse a plain change. Nothing proves who has written a change: the encryption hides resources, and signs none.
package store
