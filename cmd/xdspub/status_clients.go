package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/internal/addr"
	"xdspub/internal/expiry"
	"xdspub/internal/grpcdial"
	"xdspub/serve/csds"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/params"
)

// clientsReport is a running serve's report on itself and its clients.
type clientsReport struct {
	// InSync means that the report has no fault.
	InSync bool   `json:"in_sync"`
	Serve  string `json:"serve"`
	// Wrong names the faults in words.
	Wrong []string `json:"wrong"`
	csds.Server
	Clients []clients.Client `json:"clients"`
}

// newClientsReport returns the report on an answer of the server at an address.
func newClientsReport(address string, a *csds.Answer, now time.Time) clientsReport {
	r := clientsReport{Serve: address, Wrong: append([]string{}, a.Server.Faults(now)...), Server: a.Server, Clients: a.Clients}
	if fault := clients.Fault(a.Clients); fault != "" {
		r.Wrong = append(r.Wrong, fault)
	}
	r.InSync = len(r.Wrong) == 0
	return r
}

// askedFiles returns the TLS files for asking the server at an address; nil to ask without TLS.
func askedFiles(c *call, address string) (*grpcdial.Files, error) {
	name := settings.FirstGiven(c.Settings, settings.AskedServe()[1:])
	switch {
	case c.TLSCert.Given() != c.TLSKey.Given():
		return nil, usagef("--tls-cert and --tls-key belong together: give both")
	case name == "":
		return nil, nil
	case strings.HasPrefix(address, "unix:"):
		return nil, usagef("--%s is for HOST:PORT: a Unix socket has no TLS", name)
	}
	return &grpcdial.Files{CA: c.TLSCA.Value, Cert: c.TLSCert.Value, Key: c.TLSKey.Value, ServerName: c.TLSServerName.Value}, nil
}

// servePatience is how long status waits for the answer of a server.
const servePatience = 20 * time.Second

// servedStatus prints the status of the server at an address and of its clients.
func servedStatus(c *call, address string) error {
	if c.Args().Present() {
		return usagef("--serve asks the server about its own source tree: leave out the tree")
	}
	if _, err := addr.Parse(address); err != nil {
		return usagef("invalid --serve %q: write HOST:PORT or unix:PATH", address)
	}
	files, err := askedFiles(c, address)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, servePatience)
	defer cancel()
	answer, err := csds.Ask(ctx, address, files)
	if err != nil {
		return err
	}
	report := newClientsReport(address, answer, time.Now())
	return printReport(c, report, report.InSync, writeClients)
}

// writeClients prints a report as text.
func writeClients(w io.Writer, r clientsReport, now time.Time) error {
	p := &statusPrinter{now: now}
	if r.InSync {
		says := []string{diag.Count(clients.Connected(r.Clients), "client")}
		if notice := r.Watch.Certificates.Notice(); notice != "" {
			says = append(says, notice)
		}
		p.printf("in sync: %s\n", strings.Join(says, ", "))
	} else {
		p.printf("not in sync: %s\n", diag.Clip(strings.Join(r.Wrong, "; "), diag.MaxText))
	}
	p.server(r.Server)
	p.clients(r.Clients)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// server prints the state of a server.
func (p *statusPrinter) server(s csds.Server) {
	w := s.Watch
	word := func(text string) string { return diag.Clip(text, diag.MaxWord) }
	switch {
	case w.Snapshot == "":
	case w.SnapshotSince.IsZero():
		p.printf("serves: snapshot %s of an earlier process\n", word(w.Snapshot))
	default:
		p.printf("serves: snapshot %s since %s\n", word(w.Snapshot), p.at(w.SnapshotSince))
	}
	p.printf("source: %s", word(cmp.Or(w.Source, "not read yet")))
	if w.Revision != "" {
		p.printf(", revision %s", word(w.Revision))
	}
	if w.Last != nil {
		p.printf(", read at %s (%s): %s", p.at(w.Last.Ended), word(w.Last.Reason), word(string(w.Last.Outcome)))
	}
	p.printf("\n")
	if w.Failed != "" {
		p.printf("  can't be read or published: %s\n", diag.Clip(w.Failed, diag.MaxText))
	}
	if r := w.Refused; r != nil {
		what := "is invalid"
		if r.Snapshot != "" {
			what = fmt.Sprintf("is snapshot %s, which is held", word(r.Snapshot))
		}
		p.printf("  %s since %s: %s\n", what, p.at(r.Since), r.Count())
		most, _ := r.Findings.Most(mostOfAKind)
		for _, d := range most {
			p.printf("  %s\n", diag.Clip(fmt.Sprint(d), 2*diag.MaxText))
		}
		if left := r.Errors + r.Warnings - len(most); left > 0 {
			p.printf("  … and %s\n", diag.Count(left, "more finding"))
		}
	}
	p.certificates(w.Certificates)
	p.validity("certificate", s.Certificate)
	p.validity("CA of clients", s.ClientCA)
	for _, a := range s.Aggregates {
		p.printf("%s (%s): %s, snapshot %s", word(a.Name), diag.Clip(a.Node, diag.MaxText), diag.Count(a.Clients, "client"), word(cmp.Or(a.Snapshot, "none")))
		if a.State != "" {
			p.printf(", state %s", diag.Clip(a.State, diag.MaxText))
		}
		p.printf("\n")
	}
}

// validity prints a line if a certificate of the server is not valid, or expires soon.
func (p *statusPrinter) validity(what string, v expiry.Validity) {
	at := v.Until.UTC().Format(time.RFC3339)
	switch v.At(p.now) {
	case expiry.Expired:
		p.printf("%s: expired at %s: clients can't connect by TLS\n", what, at)
	case expiry.NotYetValid:
		p.printf("%s: not valid before %s: clients can't connect by TLS\n", what, v.From.UTC().Format(time.RFC3339))
	case expiry.ExpiresSoon:
		p.printf("%s: expires at %s (in %s)\n", what, at, v.Until.Sub(p.now).Truncate(time.Second))
	}
}

// certificates prints the findings about certificates of the source tree that are out of date or expire soon.
func (p *statusPrinter) certificates(c control.Certificates) {
	for _, list := range []struct {
		title string
		diag.List
	}{{c.Fault(), c.OutOfDate}, {c.Notice(), c.ExpireSoon}} {
		if len(list.List) == 0 {
			continue
		}
		p.printf("source tree: %s\n", list.title)
		p.findings(list.List)
	}
}

// clients prints clients: clients out of sync first, disconnected clients last.
func (p *statusPrinter) clients(list []clients.Client) {
	for _, inSync := range []bool{false, true} {
		for _, c := range list {
			if c.Gone.IsZero() && c.InSync() == inSync {
				p.client(c, "since "+p.at(c.Since))
			}
		}
	}
	for _, c := range list {
		if !c.Gone.IsZero() {
			p.client(c, "gone at "+p.at(c.Gone))
		}
	}
}

// client prints a line for a client, and a line for each type that is out of sync. A server may send any text,
// so client escapes the text for the terminal.
func (p *statusPrinter) client(c clients.Client, when string) {
	word := func(text string) string { return diag.Clip(text, diag.MaxWord) }
	p.printf("client %q (%s): %s, %s", c.Node, word(strings.TrimPrefix(c.UserAgent+", "+c.Address, ", ")), word(c.Kind), when)
	if len(c.Parameters) > 0 {
		p.printf(", with %s", diag.Clip(params.Parameters(c.Parameters).String(), diag.MaxText))
	}
	for _, s := range clients.Syncs {
		if n := c.Count(s); n > 0 {
			p.printf(", %d %s", n, s)
		}
	}
	p.printf("\n")
	var runs []string
	for _, s := range c.Subscriptions {
		if s.Acknowledged != "" && c.Gone.IsZero() {
			runs = append(runs, word(s.API)+" "+word(s.Acknowledged))
		}
	}
	if len(runs) > 0 {
		p.printf("  runs %s\n", strings.Join(runs, ", "))
	}
	for _, s := range c.Subscriptions {
		if s.Sync == clients.Synced || s.Sync == clients.NotSent || !c.Gone.IsZero() {
			continue
		}
		p.printf("  %-8s  %s: ", word(string(s.Sync)), word(s.API))
		if s.Sync == clients.NoVariant {
			p.printf("client %q gets no variant of %s; it keeps what it has\n", c.Node, diag.Clip(missing(s), diag.MaxText))
			continue
		}
		p.printf("served is version %s, acknowledged %s, since %s\n", word(cmp.Or(s.Version, "none")), word(cmp.Or(s.Acknowledged, "none")), p.at(s.Since))
		if s.Refusal != nil {
			for _, d := range s.Refusal.Findings {
				p.printf("            %s\n", diag.Clip(fmt.Sprint(d), 2*diag.MaxText))
			}
		}
	}
}

// missing returns the resources of a subscription that have variants only for other clients, as in listener
// "edge".
func missing(s clients.Subscription) string {
	noun := s.API
	if t := xds.TypeOfAPI(s.API); t != nil {
		noun = t.Noun
	}
	return noun + " " + diag.Few(quoted(s.Missing), mostOfAKind)
}
