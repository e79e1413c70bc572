package validate

// memo caches what rules computed (Once) for the resource under judgement.
type memo map[any]remembered

// remembered is a computed value, with the lookups of its computation.
type remembered struct {
	is    any
	asked []question
}

// Once returns the result of find. It calls find once for each key and resource; in Rule.Snapshot it calls find
// each time. Without Once, each of a hundred thousand routes would inspect the message around the routes. Each use
// of Once has its own type of keys, because the keys of all rules share a map.
func Once[K comparable, T any](p *Pass, key K, find func() T) T {
	if known, ok := p.memo[key]; ok {
		p.calls().ask(known.asked...)
		return known.is.(T)
	}
	asked := p.calls().since()
	found := find()
	if p.memo != nil {
		p.memo[key] = remembered{found, asked()}
	}
	return found
}
