package observe

import (
	"net/http"
	"time"

	"xdspub/diag"
	"xdspub/watch/control"
	"xdspub/xds/clients"
)

// statusAnswer is the answer of /api/v1/status.
type statusAnswer struct {
	Version string         `json:"version"`
	Since   time.Time      `json:"since"`
	Ready   bool           `json:"ready"`
	Targets []targetStatus `json:"targets"`
	// Clients is missing without a server.
	Clients *clientStatus `json:"clients,omitempty"`
}

// targetStatus is the state of a target.
type targetStatus struct {
	Target string        `json:"target"` // empty without targets
	Ready  bool          `json:"ready"`
	Faults []string      `json:"faults"`
	Watch  control.Watch `json:"watch"`
}

// clientStatus counts clients. A list of all clients is CSDS's and status --serve's.
type clientStatus struct {
	Connected int      `json:"connected"`
	Behind    int      `json:"behind"`
	Faults    []string `json:"faults"`
}

func (o *Observer) serveStatus(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	s := statusAnswer{Version: o.options.Version, Since: o.began.UTC(), Ready: allReady(o.parts(now)), Targets: []targetStatus{}}
	for _, v := range o.views() {
		s.Targets = append(s.Targets, targetStatus{
			Target: v.name, Ready: v.watch.Ready(), Faults: append([]string{}, v.watch.Faults(now)...), Watch: v.watch,
		})
	}
	if list, faults, ok := o.clients(now); ok {
		s.Clients = &clientStatus{Faults: append([]string{}, faults...)}
		s.Clients.Connected, s.Clients.Behind = clients.Counts(list)
	}
	writeJSON(w, s)
}

// findings is the answer of /api/v1/findings.
type findings struct {
	Targets []targetFindings `json:"targets"`
}

// targetFindings are the findings of a target.
type targetFindings struct {
	Target string `json:"target"`
	// Counts counts all findings, Findings may hold only the first.
	Counts   []control.CodeCount `json:"counts"`
	Findings diag.List           `json:"findings"`
	// Refused is why the source tree is not published; missing if it is.
	Refused *control.Refusal `json:"refused,omitempty"`
}

func (o *Observer) serveFindings(w http.ResponseWriter, _ *http.Request) {
	f := findings{Targets: []targetFindings{}}
	for _, v := range o.views() {
		f.Targets = append(f.Targets, targetFindings{
			Target: v.name, Counts: append([]control.CodeCount{}, v.watch.Checked.Counts...),
			Findings: append(diag.List{}, v.watch.Checked.Findings...), Refused: v.watch.Refused,
		})
	}
	writeJSON(w, f)
}
