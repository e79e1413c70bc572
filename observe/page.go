package observe

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// assets are the files of the page. The page loads nothing else.
//
//go:embed assets
var assets embed.FS

var pages = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"imagePlace": func() template.HTML { return imagePlace },
	"stamp":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"when":       when,
	"seconds": func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
	},
}).ParseFS(assets, "assets/*.html"))

// contentPolicy lets the page run its own script and style, and nothing inline or from elsewhere.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// The bounds of the page. The API and Prometheus have the rest.
const (
	mostEnvoysShown = 100
	mostGroupsShown = 50
	mostEventsShown = 100
	// mostFindingsShown is the number of findings of a refusal by Envoy.
	mostFindingsShown = 20
)

// pageData is the content of the page.
type pageData struct {
	Title, Version string
	Since, Now     time.Time
	Verdict        string
	Mood           mood
	Targets        []pageTarget
	Clients        *pageClients
	Events         []pageEvent
}

// mood is the class of a state in the style sheet.
type mood string

const (
	fine mood = "ok"
	soso mood = "warn"
	poor mood = "bad"
)

// pageTarget is a target on the page.
type pageTarget struct {
	Name, Word, Text string
	Mood             mood
	Faults           []string
	Watch            control.Watch
	Published        *event.Published
	Change           *change
	Resources        []string
	Envoys           []control.EnvoyState
	MoreEnvoys       int
}

// pageClients are the clients on the page, in groups.
type pageClients struct {
	Word       string
	Mood       mood
	Groups     []pageGroup
	MoreGroups int
}

// pageGroup are clients of one program with equal subscriptions.
type pageGroup struct {
	Program, Kind, Subscriptions string
	Connected, Behind            int
	Mood                         mood
}

// pageEvent is an event on the page.
type pageEvent struct {
	Time, Clock, Level, Name, Target, Text string
}

func (o *Observer) servePage(w http.ResponseWriter, _ *http.Request) {
	data := o.pageData(time.Now())
	data.Events = o.pageEvents()
	render(w, http.StatusOK, "page.html", data)
}

func (o *Observer) serveState(w http.ResponseWriter, _ *http.Request) {
	render(w, http.StatusOK, "state", o.pageData(time.Now()))
}

// render writes a template, or an error without a half page.
func render(w http.ResponseWriter, code int, name string, data any) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // an error means that the client has left
}

// pageData returns the content of the page without events.
func (o *Observer) pageData(now time.Time) pageData {
	data := pageData{Version: o.options.Version, Since: o.began, Now: now, Mood: fine}
	var faults []string
	views := o.views()
	for i := range views {
		t := views[i].page(now)
		data.Targets = append(data.Targets, t)
		for _, fault := range t.Faults {
			if t.Name != "" {
				fault = t.Name + ": " + fault
			}
			faults = append(faults, fault)
		}
	}
	if list, more, ok := o.clients(now); ok {
		data.Clients = groups(list)
		faults = append(faults, more...)
	}
	switch {
	case !allReady(o.parts(now)):
		data.Mood, data.Verdict, data.Title = poor, "Not ready: "+inWords(faults), "not ready"
	case len(faults) > 0:
		data.Mood, data.Verdict, data.Title = soso, inWords(faults), diag.Count(len(faults), "fault")
	default:
		data.Verdict, data.Title = o.wellInWords(views), "ok"
	}
	return data
}

// wellInWords returns the verdict without faults. The verdict names the missing --envoy-admin if nobody was asked.
func (o *Observer) wellInWords(views []view) string {
	asked := o.served() != nil || slices.ContainsFunc(views, func(v view) bool { return len(v.watch.Envoys) > 0 })
	if !asked {
		return "The source tree is published. No Envoy is asked whether it runs the files: --envoy-admin names none."
	}
	return "The source tree is published, and nobody is behind."
}

// inWords returns the only fault, or the number of faults.
func inWords(faults []string) string {
	if len(faults) == 1 {
		return faults[0]
	}
	return diag.Count(len(faults), "fault")
}

// page returns a target for the page.
func (v *view) page(now time.Time) pageTarget {
	w := &v.watch
	t := pageTarget{
		Name: v.name, Word: "published", Mood: fine, Faults: w.Faults(now), Watch: *w,
		Published: v.published, Change: v.change, Text: w.Checked.Text,
	}
	switch {
	case w.Snapshot == "":
		t.Word, t.Mood = "nothing published", poor
	case w.Refused != nil && w.Refused.Snapshot != "":
		t.Word, t.Mood, t.Text = "held", poor, t.Text+w.Refused.Findings.Text(mostFindingsShown, diag.TextOptions{})
	case w.TrialAt(now).IsFault():
		t.Word, t.Mood = "not undone", poor
	case w.Guarded != nil:
		t.Word, t.Mood = "guarded", poor
	case w.Refused != nil:
		t.Word, t.Mood = "refused", poor
	case w.Failed != "":
		t.Word, t.Mood = "failed", poor
	case w.Paused != nil:
		t.Word, t.Mood = "paused", soso
	case w.Rollout() != nil && w.Rollout().State == control.TakenBack:
		t.Word, t.Mood = "taken back", poor
	case w.Rollout() != nil:
		t.Word, t.Mood = "rolling out", soso
	case w.Trial != nil:
		t.Word, t.Mood = "awaits confirmation", soso
	case w.Pinned != nil:
		t.Word, t.Mood = "pinned", soso
	case w.Frozen != nil && w.Waits != nil:
		t.Word, t.Mood = "frozen", soso
	case len(t.Faults) > 0:
		t.Mood = soso
	}
	for _, of := range xds.Types {
		n, all := w.Checked.Resources[of.API], w.Checked.Variants[of.API]
		switch {
		case all > n:
			t.Resources = append(t.Resources, fmt.Sprintf("%s %d (%d variants)", of.API, n, all))
		case n > 0:
			t.Resources = append(t.Resources, fmt.Sprintf("%s %d", of.API, n))
		}
	}
	t.Envoys = slices.Clone(w.EnvoyStates)
	slices.SortStableFunc(t.Envoys, func(a, b control.EnvoyState) int {
		return cmp.Compare(truth(a.State == control.InSync), truth(b.State == control.InSync))
	})
	if more := len(t.Envoys) - mostEnvoysShown; more > 0 {
		t.Envoys, t.MoreEnvoys = t.Envoys[:mostEnvoysShown], more
	}
	return t
}

// groups groups the connected clients by program, kind and subscriptions.
func groups(list []clients.Client) *pageClients {
	type key struct{ program, kind, subscriptions string }
	by := make(map[key]*pageGroup)
	connected, behind := clients.Counts(list)
	for i := range list {
		c := &list[i]
		if !c.Gone.IsZero() {
			continue
		}
		var subs []string
		for _, s := range c.Subscriptions {
			subs = append(subs, fmt.Sprintf("%s %s", s.API, s.Sync))
		}
		k := key{diag.Printable(c.UserAgent), c.Kind, strings.Join(subs, ", ")}
		g := by[k]
		if g == nil {
			g = &pageGroup{Program: cmp.Or(k.program, "unknown"), Kind: k.kind, Subscriptions: k.subscriptions}
			by[k] = g
		}
		g.Connected++
		if !c.InSync() {
			g.Behind++
			g.Mood = poor
		}
	}
	p := &pageClients{Word: diag.Count(connected, "client"), Mood: fine}
	if behind > 0 {
		p.Word, p.Mood = fmt.Sprintf("%d of %s behind", behind, p.Word), soso
	}
	for _, g := range by {
		p.Groups = append(p.Groups, *g)
	}
	slices.SortFunc(p.Groups, func(a, b pageGroup) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(b.Connected, a.Connected),
			cmp.Compare(a.Program+a.Kind+a.Subscriptions, b.Program+b.Kind+b.Subscriptions))
	})
	if more := len(p.Groups) - mostGroupsShown; more > 0 {
		p.Groups, p.MoreGroups = p.Groups[:mostGroupsShown], more
	}
	return p
}

// pageEvents returns the last events, the newest first.
func (o *Observer) pageEvents() (list []pageEvent) {
	last := o.events.Last()
	_, lines, _ := o.events.Since(last - min(last, mostEventsShown))
	for _, l := range slices.Backward(lines) {
		list = append(list, pageEventOf(l))
	}
	return list
}

// pageEventOf returns an event for the page, with its keys behind the message as the script writes them.
func pageEventOf(l event.Line) pageEvent {
	e := pageEvent{Name: l.Name}
	d := json.NewDecoder(bytes.NewReader(l.JSON))
	d.UseNumber()
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return e
		}
		text := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil {
			text = plain
		}
		switch key {
		case "time":
			e.Time = text
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				e.Clock = at.UTC().Format(time.TimeOnly)
			}
		case "level":
			e.Level = text
		case "msg":
			e.Text = text + e.Text
		case "event":
		case "target":
			e.Target = text
		default:
			e.Text += fmt.Sprintf(" %s=%s", key, text)
		}
	}
	return e
}

// when returns a time as an age, such as "3m ago".
func when(t, now time.Time) string {
	switch age := now.Sub(t).Round(time.Second); {
	case age < time.Second:
		return "just now"
	case age < time.Minute:
		return fmt.Sprintf("%d s ago", int(age.Seconds()))
	case age < time.Hour:
		return fmt.Sprintf("%d min ago", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(age.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(age.Hours()/24))
	}
}
