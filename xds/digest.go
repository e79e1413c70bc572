package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math/bits"
)

// digest identifies a set of resources: it is the sum of their hashes. So the digest of a Snapshot follows from the
// digest of the former Snapshot and their Change, and does not depend on the order of the resources.
type digest [4]uint64

// digestOf returns the digest of one resource. It is computed once.
func digestOf(r *Resource) digest {
	if d := r.digest.Load(); d != nil {
		return *d
	}
	sum := sha256.Sum256([]byte(r.Name + "\x00" + r.Version()))
	var d digest
	for i := range d {
		d[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	r.digest.Store(&d)
	return d
}

func (d digest) plus(o digest) digest {
	var carry uint64
	for i := range d {
		d[i], carry = bits.Add64(d[i], o[i], carry)
	}
	return d
}

func (d digest) minus(o digest) digest {
	var borrow uint64
	for i := range d {
		d[i], borrow = bits.Sub64(d[i], o[i], borrow)
	}
	return d
}

func (d digest) bytes() []byte {
	var b []byte
	for _, x := range d {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// digests has the digest of the resources of each type. The digest of a type without resources is zero.
type digests map[*Type]digest

func digestsOf(byType map[*Type][]*Resource) digests {
	ds := make(digests, len(byType))
	for t, list := range byType {
		var d digest
		for _, r := range list {
			d = d.plus(digestOf(r))
		}
		ds[t] = d
	}
	return ds
}

// after returns the digests once a Change is applied.
func (ds digests) after(c Change) digests {
	next := maps.Clone(ds)
	for _, r := range c.Removed {
		next[r.Type] = next[r.Type].minus(digestOf(r))
	}
	for _, r := range c.Added {
		next[r.Type] = next[r.Type].plus(digestOf(r))
	}
	return next
}

// version returns the digest of a type as a version_info.
func (ds digests) version(t *Type) string { return "v" + hex.EncodeToString(ds[t].bytes()[:8]) }

// id returns a hash of all digests. LocalityEndpoints came after the first ids: without resources, they have no
// part in the hash, so that such ids stay the same.
func (ds digests) id() string {
	var parts [][]byte
	for _, t := range Types {
		if t == LocalityEndpoints && ds[t] == (digest{}) {
			continue
		}
		parts = append(parts, []byte(t.API), ds[t].bytes())
	}
	return Version(parts)
}
