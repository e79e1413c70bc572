package validate

// memo holds what rules have found out about messages of the resource that is judged.
type memo map[any]remembered

// remembered is a computed value, with the lookups of its computation.
type remembered struct {
	is    any
	asked []question
}

// Once returns the result of find, and calls find once for each key and resource. Without Once, a hundred
// thousand routes would inspect the message around the routes a hundred thousand times. Each use of Once has
// its own type of keys.
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
