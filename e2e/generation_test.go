package e2e

import (
	"fmt"
	"slices"
	"testing"

	"xdspub/tools/envoytest"
)

// ground has the ports, which stay the same in all generations of a configuration.
type ground struct {
	upstreams [3]int
	// inline, named, stays and moving each have a listener in every generation.
	inline, named, stays, moving int
	// passing are the ports of listeners that are added and removed. Each listener serves for two generations, so
	// that clients can leave it before it is removed.
	passing [4]int
}

func newGround(t *testing.T) *ground {
	g := new(ground)
	for i := range g.upstreams {
		g.upstreams[i] = envoytest.NewUpstream(t, "upstream").Port()
	}
	for _, port := range []*int{&g.inline, &g.named, &g.stays, &g.moving} {
		*port = envoytest.FreePort(t)
	}
	for i := range g.passing {
		g.passing[i] = envoytest.FreePort(t)
	}
	return g
}

// passingPort returns the port of the listener that generation n adds.
func (g *ground) passingPort(n int) int { return g.passing[n%len(g.passing)] }

// door is a listener, for its clients.
type door struct {
	name string
	port int
}

// doors returns the listeners for clients of generation n, always in the same order. Only the port of passing
// differs between generations.
func (g *ground) doors(n int) []door {
	return []door{{"inline", g.inline}, {"named", g.named}, {"stays", g.stays}, {"moving", g.moving}, {"passing", g.passingPort(n)}}
}

// generation is a configuration with new clusters, except ballast, and a new RDS name. All routes change to the new
// clusters:
//
//   - inline has its routes in the listener, which gets a new filter chain,
//   - named asks for an RDS name that is as new as its cluster,
//   - stays keeps listener and RDS name: its routes change their target,
//   - moving is a new listener in each generation, on the address of the old one,
//   - passing is a new listener on another port; the last but one goes.
//
// Resources are documents of YAML.
type generation struct {
	clusters, listeners []string
	endpoints           []resource
	routes              []resource // the new name, and the name that stays
}

// resource is a resource with its own file.
type resource struct{ name, text string }

// ballast is the number of unused clusters in each generation. They keep Envoy's main thread busy.
const ballast = 300

// generation returns generation n. source returns the config source of a resource; kind is its folder in the output
// directory.
func (g *ground) generation(n int, source func(kind, name string) string) generation {
	var made generation
	port := func(i int) int { return g.upstreams[(n+i)%len(g.upstreams)] }
	cluster := func(kind string, n, port int) string {
		name := fmt.Sprintf("%s-%d", kind, n)
		made.clusters = append(made.clusters, staticCluster(name, port))
		return name
	}
	discovered := func(kind string, port int) string {
		name := fmt.Sprintf("%s-%d", kind, n)
		made.clusters = append(made.clusters, edsCluster(name, "eds_cluster_config: {eds_config: "+source("eds", name)+"}"))
		made.endpoints = append(made.endpoints, resource{name, endpoints(name, port)})
		return name
	}
	listen := func(name string, port int, routes string) {
		made.listeners = append(made.listeners, listener(name, port, routes, localReplies))
	}
	byName := func(name string, n int, cluster string) string {
		made.routes = append(made.routes, resource{name, document("envoy.config.route.v3.RouteConfiguration", "name: %q, %s", name, numbered(n, cluster))})
		return fmt.Sprintf("rds: {route_config_name: %q, config_source: %s}", name, source("rds", name))
	}
	within := func(n int, cluster string) string { return "route_config: {" + numbered(n, cluster) + "}" }

	listen("inline", g.inline, within(n, cluster("inline", n, port(0))))
	listen("named", g.named, byName(fmt.Sprintf("routes-%d", n), n, discovered("named", port(1))))
	listen("stays", g.stays, byName("routes", n, discovered("stays", port(2))))
	listen(fmt.Sprintf("moving-%d", n), g.moving, within(n, cluster("moving", n, port(1))))
	for i := max(0, n-1); i <= n; i++ {
		name := cluster("passing", i, g.upstreams[i%len(g.upstreams)])
		listen(name, g.passingPort(i), within(i, name))
	}
	for i := range ballast {
		cluster("ballast", i, g.upstreams[0])
	}
	return made
}

// numbered returns virtual hosts whose answers have the generation in a header.
func numbered(n int, cluster string) string {
	return fmt.Sprintf(`response_headers_to_add: [{header: {key: x-generation, value: "%d"}}], %s`, n, hosts(cluster))
}

// localReplies adds the reason to the answers that Envoy itself gives.
const localReplies = `local_reply_config: {body_format: {text_format_source: {inline_string: "%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%"}}}`

// tree returns the generation as a source file.
func (g *ground) tree(n int) string {
	made := g.generation(n, func(string, string) string { return here })
	list := slices.Concat(made.clusters, made.listeners)
	for _, r := range slices.Concat(made.endpoints, made.routes) {
		list = append(list, r.text)
	}
	return documents(list...)
}
