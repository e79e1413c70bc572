package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"xdspub/tools/envoytest"
)

// chaosTree is the intended content of a source tree. It is a value, so that an assignment restores an earlier state.
type chaosTree struct {
	clusters  [6]chaosCluster
	routes    [3]chaosRoutes
	listeners [5]chaosListener
	secret    int
	marker    int
	layer     int // 0 is none
	scoped    bool
	scopes    [2]int // 0 is none, n is the cluster n-1
}

type chaosCluster struct {
	kind      string // "static", "eds" or "tls"; "" if the cluster does not exist
	value     int
	endpoints int
}

type chaosRoutes struct {
	there    bool
	value    int
	clusters [2]int
}

type chaosListener struct {
	kind  string // "inline", "rds" or "tls"; "" if the listener does not exist
	port  int    // of chaos.ports
	value int
	uses  int // a cluster or routes
}

// edit makes one change, and then changes the users of removed resources.
func (g *chaosTree) edit(c *chaos) string {
	i := c.rand.IntN(len(g.clusters))
	j := c.rand.IntN(len(g.routes))
	k := c.rand.IntN(len(g.listeners))
	what := ""
	switch c.rand.IntN(14) {
	case 0, 1:
		g.clusters[i].kind = choose(c.soak, []string{"", "static", "eds", "tls", "eds"})
		g.clusters[i].value = c.rand.IntN(9)
		what = fmt.Sprintf("c%d is %q", i, g.clusters[i].kind)
	case 2:
		g.clusters[i].value = c.rand.IntN(9)
		what = fmt.Sprintf("c%d changes", i)
	case 3:
		g.clusters[i].endpoints++
		what = fmt.Sprintf("c%d has other endpoints", i)
	case 4:
		g.clusters[i].endpoints++
		g.clusters[i].value = c.rand.IntN(9)
		what = fmt.Sprintf("c%d and its endpoints change", i)
	case 5:
		g.routes[j].there = !g.routes[j].there
		what = fmt.Sprintf("r%d: %v", j, g.routes[j].there)
	case 6:
		g.routes[j].value = c.rand.IntN(9)
		g.routes[j].clusters[c.rand.IntN(2)] = i
		what = fmt.Sprintf("r%d changes", j)
	case 7, 8:
		g.listeners[k].kind = choose(c.soak, []string{"", "inline", "rds", "tls"})
		g.listeners[k].uses = c.rand.IntN(6)
		what = fmt.Sprintf("l%d is %q", k, g.listeners[k].kind)
		if g.listeners[k].kind != "" {
			g.listeners[k].port = g.freePort(c, g.listeners[k].port)
		}
	case 9:
		g.listeners[k].value = c.rand.IntN(9)
		g.listeners[k].uses = c.rand.IntN(6)
		what = fmt.Sprintf("l%d changes", k)
	case 10: // a port passes on
		other := c.rand.IntN(len(g.listeners))
		had := g.listeners[k].port
		g.listeners[k].port = g.freePort(c, -1)
		if other != k {
			g.listeners[other].port = had
		}
		what = fmt.Sprintf("l%d moves, l%d takes its port", k, other)
	case 11:
		g.secret++
		g.marker += c.rand.IntN(2)
		what = "the secret changes"
	case 12:
		g.layer = c.rand.IntN(4)
		what = fmt.Sprintf("the layer is %d", g.layer)
	case 13:
		g.scoped = c.rand.IntN(4) > 0
		g.scopes[c.rand.IntN(2)] = c.rand.IntN(len(g.clusters) + 1)
		what = fmt.Sprintf("scopes %v, scoped %v", g.scopes, g.scoped)
	}
	g.mend(c)
	return what
}

// freePort returns a port that no other listener has: had, if it is free, or any port.
func (g *chaosTree) freePort(c *chaos, had int) int {
	taken := make(map[int]bool)
	for _, e := range g.listeners {
		if e.kind != "" {
			taken[e.port] = true
		}
	}
	if had >= 0 && !taken[had] {
		return had
	}
	for {
		if p := c.rand.IntN(len(c.ports)); !taken[p] {
			return p
		}
	}
}

// mend changes the users of missing resources, and listeners with the same port.
func (g *chaosTree) mend(c *chaos) {
	if g.clusters[0].kind == "" {
		g.clusters[0].kind = "static"
	}
	is := func(i int) int {
		if g.clusters[i].kind == "" {
			return 0
		}
		return i
	}
	for j := range g.routes {
		for n := range g.routes[j].clusters {
			g.routes[j].clusters[n] = is(g.routes[j].clusters[n])
		}
	}
	for k := range g.listeners {
		e := &g.listeners[k]
		switch e.kind {
		case "inline":
			e.uses = is(e.uses)
		case "rds", "tls":
			e.uses %= len(g.routes)
			g.routes[e.uses].there = true
		case "":
			continue
		}
		for _, other := range g.listeners[:k] {
			if other.kind != "" && other.port == e.port {
				e.port = g.freePort(c, -1)
			}
		}
	}
	for n := range g.scopes {
		if g.scopes[n] > 0 {
			g.scopes[n] = is(g.scopes[n]-1) + 1
		}
	}
	if g.scopes == [2]int{} {
		g.scopes[0] = 1
	}
}

// files returns the files of a tree, by name.
func (c *chaos) files(g chaosTree) map[string]string {
	files := make(map[string]string)
	upstream := func(n int) int { return c.upstreams[n%len(c.upstreams)] }
	certificates := false
	for i, r := range g.clusters {
		name := fmt.Sprint("c", i)
		timeout := fmt.Sprintf("connect_timeout: %ds", 1+r.value)
		switch r.kind {
		case "static":
			files[name+".yaml"] = staticCluster(name, upstream(r.endpoints), timeout)
		case "eds":
			if i%2 == 1 {
				timeout += fmt.Sprintf(", alt_stat_name: alt.%d", i)
			}
			files[name+".yaml"] = edsCluster(name, timeout)
			files[name+".endpoints.yaml"] = endpoints(name, upstream(r.endpoints))
		case "tls":
			certificates = true
			files[name+".yaml"] = staticCluster(name, upstream(r.endpoints), timeout, upstreamTLS("client"))
		}
	}
	for j, r := range g.routes {
		if name := fmt.Sprint("r", j); r.there {
			files[name+".yaml"] = routes(name, fmt.Sprint("c", r.clusters[0]), fmt.Sprintf(`{match: {prefix: "/%d"}, route: {cluster: c%d}}`, r.value, r.clusters[1]))
		}
	}
	marked := false
	for k, e := range g.listeners {
		name, port := fmt.Sprint("l", k), c.ports[e.port]
		hcm := []string{fmt.Sprintf("server_name: v%d", e.value)}
		if e.value%3 == 0 {
			marked = true
			hcm = append(hcm, "http_filters: ["+discovered("marker", headerMutation)+", "+router+"]")
		}
		switch e.kind {
		case "inline":
			files[name+".yaml"] = listener(name, port, append(hcm, "route_config: {"+hosts(fmt.Sprint("c", e.uses))+"}")...)
		case "rds":
			files[name+".yaml"] = listener(name, port, append(hcm, rds(fmt.Sprint("r", e.uses)))...)
		case "tls":
			files[name+".yaml"] = tlsListener(name, port, downstreamTLS("server"), append(hcm, rds(fmt.Sprint("r", e.uses)))...)
			files["server.yaml"] = certificate("server", c.pairs[g.secret%len(c.pairs)])
		}
	}
	if certificates {
		files["client.yaml"] = certificate("client", c.pairs[(g.secret+1)%len(c.pairs)])
	}
	if marked {
		files["marker.yaml"] = extension("marker", responseHeader(fmt.Sprint("v", g.marker)))
	}
	if g.layer > 0 {
		files["flags.yaml"] = runtimeLayer("flags", fmt.Sprintf("{flag: %d}", g.layer))
	}
	if g.scoped {
		files["scoped.yaml"] = listener("scoped", c.scoped, srds("tenants"))
		files["r-scoped.yaml"] = ""
		for n, cluster := range g.scopes {
			if cluster > 0 {
				name := fmt.Sprint("by-scope-", n)
				files["r-scoped.yaml"] += "---\n" + routes(name, fmt.Sprint("c", cluster-1)) + "---\n" + scope(fmt.Sprint("scope-", n), fmt.Sprint(n), name)
			}
		}
	}
	return files
}

// save writes the changed files of the tree, one by one, in random order.
func (c *chaos) save() {
	files := c.files(c.tree)
	names := slices.Sorted(maps.Keys(files))
	c.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if c.saved[name] != files[name] {
			envoytest.Publish(c.t, filepath.Join(c.src, name), files[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.saved)) {
		if _, stays := files[name]; !stays {
			c.must(os.Remove(filepath.Join(c.src, name)))
		}
	}
	c.saved = files
}
