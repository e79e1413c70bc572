package validate

// memo holds what rules have found out about messages of the resource that is judged.
type memo map[any]remembered

// remembered is what a rule has found out, and what it looked up for that.
type remembered struct {
	is    any
	asked []question
}

// Once returns the result of find, which it calls once for each key and resource. Without it, a
// hundred thousand routes that each ask what is around them would find it a hundred thousand
// times. Each use of Once has a type of its own for its keys.
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
