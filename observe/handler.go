package observe

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"xdspub/observe/graph"
	"xdspub/xds/clients"
)

// openapi describes the API.
//
//go:embed openapi.yaml
var openapi []byte

// Handler returns the handler of all paths:
//
//	GET /                       the page, with /state and /assets/
//	GET /graph                  the graph of a target: ?target=NAME&focus=RESOURCE&all
//	GET /graph.svg              the same as an image
//	GET /metrics                metrics, as Prometheus reads them
//	GET /livez                  200 while the process answers
//	GET /readyz                 200 once a valid snapshot is out and acknowledged; ?verbose names the parts
//	GET /api/v1/status          the state of each target and of the clients
//	GET /api/v1/findings        the findings of the source tree
//	GET /api/v1/events          the events, as server-sent events
//	GET /api/v1/openapi.yaml    the description of the API
//	GET /debug/pprof/           profiles, with Options.Profiles
//
// The page and the API show names and places of resources, so Protect and Options.Hosts protect them.
func (o *Observer) Handler() http.Handler {
	open, closed := http.NewServeMux(), http.NewServeMux()
	open.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, nil) })
	open.HandleFunc("GET /readyz", o.serveReady)
	open.Handle("GET /metrics", promhttp.HandlerFor(prometheus.GathererFunc(o.gather), promhttp.HandlerOpts{}))
	closed.HandleFunc("GET /api/v1/status", o.serveStatus)
	closed.HandleFunc("GET /api/v1/findings", o.serveFindings)
	closed.HandleFunc("GET /api/v1/events", o.serveEvents)
	closed.HandleFunc("GET /api/v1/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openapi)
	})
	closed.HandleFunc("GET /{$}", o.servePage)
	closed.HandleFunc("GET /state", o.serveState)
	closed.HandleFunc("GET /graph", o.serveGraph)
	closed.HandleFunc("GET /graph.svg", o.serveImage)
	closed.HandleFunc("GET /assets/graph.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = io.WriteString(w, graph.Style)
	})
	for _, name := range []string{"style.css", "page.js", "icon.svg"} {
		closed.HandleFunc("GET /assets/"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, "assets/"+name) })
	}
	if o.options.Profiles {
		closed.HandleFunc("GET /debug/pprof/", pprof.Index)
		closed.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		closed.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		closed.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	open.Handle("/", o.guard(closed))
	return open
}

// guard protects names and places of resources. A page of another site can make a browser send requests: the Host of
// such a request is that site's if its name leads here (DNS rebinding), and otherwise the browser keeps the answer
// from the page.
func (o *Observer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here: xdspub render --retry-held asks a running watch to publish again", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", contentPolicy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		if !o.isHost(r) {
			http.Error(w, fmt.Sprintf("the host %.100q is not a name of this server: use an IP address, localhost, or the name in --http", r.Host),
				http.StatusMisdirectedRequest)
			return
		}
		// A person may follow a link from another site to the page.
		visits := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
		if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && !visits {
			http.Error(w, "a page of another site may not ask", http.StatusForbidden)
			return
		}
		o.mu.Lock()
		mayAsk := o.mayAsk
		o.mu.Unlock()
		if mayAsk != nil {
			if err := mayAsk(r); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isHost reports whether the Host of a request is a name of this server. Over TLS, the certificate has told.
func (o *Observer) isHost(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" || r.TLS != nil {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(o.options.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// part is a part of readiness.
type part struct {
	name   string
	ready  bool
	faults []string
}

// parts returns the parts of readiness: one for each target, one for the server, and one for each aggregate. The part
// of an aggregate is always ready.
func (o *Observer) parts(now time.Time) (list []part) {
	if s := o.served(); s != nil {
		p := part{name: "server"}
		p.ready, p.faults = s.Ready(now)
		list = append(list, p)
	}
	views := o.views()
	if len(views) == 0 {
		list = append(list, part{name: "source", faults: []string{"the source tree is not read yet"}})
	}
	for _, v := range views {
		p := part{name: "source", ready: v.watch.Ready(), faults: v.watch.Faults(now)}
		switch {
		case v.watch.Aggregate != "": // clients choose the nodes of aggregates, and must not make the server unready
			p.name, p.ready = v.name, true
		case v.name != "":
			p.name = "target " + v.name
		}
		list = append(list, p)
	}
	return list
}

// allReady reports whether all parts are ready.
func allReady(parts []part) bool {
	return !slices.ContainsFunc(parts, func(p part) bool { return !p.ready })
}

// clients returns the clients of the server, with the faults of both as text for people. ok is false without a server.
func (o *Observer) clients(now time.Time) (list []clients.Client, faults []string, ok bool) {
	s := o.served()
	if s == nil {
		return nil, nil, false
	}
	list = s.Clients()
	_, faults = s.Ready(now)
	if fault := clients.Fault(list); fault != "" {
		faults = append(faults, fault)
	}
	return list, faults, true
}

// serveReady serves /readyz. A target can be ready with faults: the last valid snapshot stays published while the
// source tree is invalid.
func (o *Observer) serveReady(w http.ResponseWriter, r *http.Request) {
	parts := o.parts(time.Now())
	verbose := r.URL.Query().Has("verbose")
	var lines []string
	for _, p := range parts {
		if verbose {
			mark := "[+]"
			if !p.ready {
				mark = "[-]"
			}
			lines = append(lines, mark+p.name)
		}
		for _, fault := range p.faults {
			if p.name != "source" && p.name != "server" || verbose {
				fault = p.name + ": " + fault
			}
			lines = append(lines, fault)
		}
	}
	answer(w, allReady(parts), lines)
}

// answer answers a probe with one line per fault.
func answer(w http.ResponseWriter, ok bool, lines []string) {
	if !ok {
		http.Error(w, strings.Join(append([]string{"not ready"}, lines...), "\n"), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, strings.Join(append([]string{"ok"}, lines...), "\n")+"\n") // an error means that the client has left
}

// writeJSON writes a value as an indented JSON document.
func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(value) // an error means that the client has left
}
