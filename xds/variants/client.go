package variants

import (
	"maps"
	"slices"
	"strings"

	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/xdstp"
)

// Client has the dynamic parameters of a client. The parameters choose the variants for the client.
type Client struct {
	Parameters params.Parameters `json:"parameters"`
	// Authorities has the Parameters for xdstp names, by the authority of the name. Names of other authorities, and
	// names that are no xdstp URLs, have the Parameters above (TP2, Specifying Dynamic Parameters: "The client's
	// configuration should allow setting the dynamic parameters to use for each authority").
	Authorities map[string]params.Parameters `json:"authorities,omitempty"`
}

// Of returns the client's parameters for a resource.
func (c Client) Of(k xds.Key) params.Parameters {
	if len(c.Authorities) == 0 {
		return c.Parameters
	}
	name, err := xdstp.Parse(k.Name)
	if err != nil {
		return c.Parameters
	}
	if own, ok := c.Authorities[name.Authority]; ok {
		return own
	}
	return c.Parameters
}

// Matches reports whether a client gets a variant.
func (c Client) Matches(r *xds.Resource) bool { return r.For.Matches(c.Of(r.Key)) }

// Equal reports whether two clients have equal Parameters and Authorities.
func (c Client) Equal(other Client) bool {
	same := func(a, b params.Parameters) bool { return maps.Equal(a, b) }
	return same(c.Parameters, other.Parameters) && maps.EqualFunc(c.Authorities, other.Authorities, same)
}

// String returns a text such as "env=prod, and to the authority a.example region=eu".
func (c Client) String() string {
	var b strings.Builder
	b.WriteString(c.Parameters.String())
	for _, name := range slices.Sorted(maps.Keys(c.Authorities)) {
		b.WriteString(", and to the authority " + name + " " + c.Authorities[name].String())
	}
	return b.String()
}
