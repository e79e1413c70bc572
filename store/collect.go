package store

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// batch is the number of operations of a transaction. A server takes 128.
const batch = 100

// collect removes the steps that no follower needs, and the objects that no step needs, and measures the chain. It
// keeps the last step with all resources, and all later steps. For slow followers, it keeps the 64 steps before, if
// they have the same recipients.
func (t *term) collect(ctx context.Context) error {
	if t.head == nil {
		return nil
	}
	var before, unneeded []string
	needed := make(map[string]bool)
	packs := make(map[string]string) // of the steps before, by key
	t.chain = chain{}
	err := t.client.below(ctx, t.keys.of("steps")+"/", func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		s, err := parseStep(kv)
		switch {
		case err != nil:
			return nil // followers skip the key, too
		case s.Cipher != t.head.Step.Cipher:
			unneeded = append(unneeded, key)
		case key < t.keys.step(t.head.Whole):
			before = append(before, key)
			packs[key] = s.Pack
		case key == t.keys.step(t.head.Whole):
			needed[s.Pack] = true
			t.chain.whole = s.Bytes
		default:
			needed[s.Pack] = true
			t.chain.steps++
			t.chain.bytes += s.Bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	unneeded = append(unneeded, before[:max(0, len(before)-lagging)]...)
	for _, key := range before[max(0, len(before)-lagging):] {
		needed[packs[key]] = true
	}
	err = t.client.below(ctx, t.keys.objects(), func(kv *mvccpb.KeyValue) error {
		hash, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), t.keys.objects()), "/")
		if !needed[hash] {
			unneeded = append(unneeded, string(kv.Key))
		}
		return nil
	}, clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	return t.remove(ctx, unneeded)
}

// remove removes keys while the term is not over.
func (t *term) remove(ctx context.Context, list []string) error {
	for len(list) > 0 {
		var then []clientv3.Op
		for _, key := range list[:min(batch, len(list))] {
			then = append(then, clientv3.OpDelete(key))
		}
		done, _, err := t.client.commit(ctx, []clientv3.Cmp{t.mine()}, then...)
		if err != nil {
			return err
		}
		if !done {
			return errLost
		}
		list = list[len(then):]
	}
	return nil
}
