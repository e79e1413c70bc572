package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"xdspub/render/history"
	"xdspub/xds"
)

// reader reads the resources of a target.
type reader struct {
	client   *client
	keys     keys
	registry *xds.Registry // the types in the resources; nil for those of the API
	ageKeys  string        // Options.AgeKeys
	change   []byte        // the decoded Head.Change
}

// at is the last head that a process has read or written.
type at struct {
	serial int64
	step   int64         // the serial of the last step
	tree   *history.Tree // nil for none
	id     string        // Head.Tree of the tree
}

// errGap means that the resources before a step are unknown, because an earlier step is missing.
var errGap = errors.New("the store lacks a step: restart the writer, which then writes all resources again")

// GoneError means that the store lacks bytes of a change. The writer may have removed the change meanwhile.
type GoneError struct{ Key string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("the key %s is missing: the store was damaged, or the writer has removed the change meanwhile", e.Key)
}

// DamagedError means that bytes in the store are not what a head or a step says.
type DamagedError struct {
	Key    string
	Reason error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the change at %s is damaged: %v; restart the writer, which then writes all resources again", e.Key, e.Reason)
}

// Unwrap returns the Reason.
func (e *DamagedError) Unwrap() error { return e.Reason }

// head returns the head, nil for none, the revision that has moved the head, and the revision of the store.
func (r reader) head(ctx context.Context) (h *Head, moved, revision int64, err error) {
	kv, revision, err := r.client.get(ctx, r.keys.head())
	if err != nil || kv == nil {
		return nil, 0, revision, err
	}
	head, err := parseHead(r.keys.head(), kv.Value)
	return &head, kv.ModRevision, revision, err
}

// advance returns the resources of a head. It reads the changes since was. If the store no longer has these changes,
// advance reads all resources.
func (r reader) advance(ctx context.Context, was at, h Head) (*history.Tree, error) {
	switch {
	case h.Tree == "":
		return history.NewTree(xds.NewSnapshot(nil), was.tree)
	case was.id == h.Tree:
		return was.tree, nil
	}
	r.change, _ = base64.StdEncoding.DecodeString(h.Change) // pack compares the hash, and ignores a wrong Change
	is, err := r.apply(ctx, was, []Step{h.Step})
	if errors.Is(err, errGap) && was.tree != nil {
		is, err = r.applySince(ctx, was, was.step+1, h)
	}
	if isIncomplete(err) {
		whole, e := r.applySince(ctx, at{}, h.Whole, h)
		if e == nil || errors.Is(err, errGap) || !isIncomplete(e) {
			is, err = whole, e
		}
	}
	return is.tree, err
}

// isIncomplete reports whether an error means that a step is missing or invalid. Then the last step with all resources
// may still be valid.
func isIncomplete(err error) bool {
	_, gone := errors.AsType[*GoneError](err)
	_, damaged := errors.AsType[*DamagedError](err)
	_, foreign := errors.AsType[*ForeignError](err)
	_, cipher := errors.AsType[*CipherError](err)
	return errors.Is(err, errGap) || gone || damaged || foreign || cipher
}

// applySince applies the steps from a serial to a head. Steps after the head, such as the step to a candidate, are
// ignored.
func (r reader) applySince(ctx context.Context, was at, from int64, h Head) (at, error) {
	var steps []Step
	err := r.client.each(ctx, r.keys.step(from), r.keys.step(h.Step.Serial+1), func(kv *mvccpb.KeyValue) error {
		if s, err := parseStep(kv); err == nil { // otherwise, the steps have a gap
			steps = append(steps, s)
		}
		return nil
	})
	if err != nil {
		return was, err
	}
	is, err := r.apply(ctx, was, steps)
	if err == nil && is.id != h.Tree {
		err = &DamagedError{r.keys.head(), fmt.Errorf("the steps lead to the resources %.12s, and the head has %.12s", is.id, h.Tree)}
	}
	return is, err
}

// parseStep reads a step.
func parseStep(kv *mvccpb.KeyValue) (s Step, err error) {
	if err := parse(string(kv.Key), kv.Value, maxHead, &s); err != nil {
		return s, err
	}
	if err := s.check(); err != nil {
		return s, &ForeignError{string(kv.Key), err.Error()}
	}
	return s, nil
}

// apply applies steps to a tree, which may be nil. Steps with all resources need no tree. With
// encryption, Step.Tree is no hash, and only Unpack compares the hash of the resources.
func (r reader) apply(ctx context.Context, is at, steps []Step) (at, error) {
	c, err := readCipher(r.ageKeys)
	if err != nil {
		return is, err
	}
	for _, s := range steps {
		switch {
		case s.Tree == is.id:
			continue
		case s.Base != "" && s.Base != is.id:
			return is, errGap
		}
		key := r.keys.chunk(s.Pack, 0)
		if err := c.requires(s.Cipher != "", key); err != nil {
			return is, err
		}
		data, err := r.pack(ctx, s)
		if err == nil {
			data, err = c.decrypt(data, key)
		}
		if err != nil {
			return is, err
		}
		if is.tree, err = is.tree.Unpack(data, r.registry); err != nil {
			return is, &DamagedError{key, err}
		}
		if c == nil && is.tree.ID() != s.Tree {
			return is, &DamagedError{key, fmt.Errorf("the change leads to the resources %.12s, and the step says %.12s", is.tree.ID(), s.Tree)}
		}
		is.id = s.Tree
	}
	return is, nil
}

// hashOf returns the hash of the bytes of a change.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pack returns the bytes of the change of a step.
func (r reader) pack(ctx context.Context, s Step) ([]byte, error) {
	if hashOf(r.change) == s.Pack {
		return r.change, nil
	}
	var data []byte
	for n := 0; int64(len(data)) < s.Bytes; n++ {
		key := r.keys.chunk(s.Pack, n)
		kv, _, err := r.client.get(ctx, key)
		switch {
		case err != nil:
			return nil, err
		case kv == nil:
			return nil, &GoneError{key}
		case int64(len(kv.Value)) != min(chunkSize, s.Bytes-int64(len(data))):
			return nil, &DamagedError{key, fmt.Errorf("the value has %d bytes, and the change %d", len(kv.Value), s.Bytes)}
		}
		data = append(data, kv.Value...)
	}
	if hashOf(data) != s.Pack {
		return nil, &DamagedError{r.keys.chunk(s.Pack, 0), errors.New("the hash of its bytes is wrong")}
	}
	return data, nil
}
