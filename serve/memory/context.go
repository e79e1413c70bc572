package memory

import "context"

type contextKey struct{}

// With returns a context with an account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// Of returns the account of a context; nil if the context has none.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(contextKey{}).(*Account)
	return a
}
