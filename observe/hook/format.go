package hook

import (
	"bytes"
	"encoding/json"
	"strings"

	"xdspub/diag"
)

// format returns the body of a request for an event and the name of this machine.
type format func(line []byte, host string) ([]byte, error)

// formats has the formats by the word before the + of a URL.
var formats = map[string]format{"": plain, "slack": slack, "alertmanager": alertmanager}

// plain returns the event as it is.
func plain(line []byte, _ string) ([]byte, error) { return line, nil }

// parsed is an event as texts.
type parsed struct {
	Time    string `json:"time"`
	Level   string `json:"level"`
	Message string `json:"msg"`
	Event   string `json:"event"`
	Target  string `json:"target"`
	keys    []key  // the others, in their order
}

// key is a key of an event.
type key struct{ name, text string }

// parse parses an event.
func parse(line []byte) (p parsed, err error) {
	if err := json.Unmarshal(line, &p); err != nil {
		return p, err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if _, err := d.Token(); err != nil { // {
		return p, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return p, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return p, err
		}
		switch name {
		case "time", "level", "msg", "event", "target":
			continue
		}
		k := key{name.(string), string(value)}
		var text string
		if json.Unmarshal(value, &text) == nil {
			k.text = text
		}
		if k.text != "" {
			p.keys = append(p.keys, k)
		}
	}
	return p, nil
}

const (
	// maxSlackText is the largest size of the text of a message to Slack.
	maxSlackText = 3000
	// maxAnnotation is the largest size of the text of a key in an alert.
	maxAnnotation = 4 << 10
)

// slack returns an event as a message of Slack's incoming webhooks.
func slack(line []byte, host string) ([]byte, error) {
	p, err := parse(line)
	if err != nil {
		return nil, err
	}
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	var b strings.Builder
	b.WriteString("*" + p.Level + " " + p.Event + "* on " + escape(host))
	if p.Target != "" {
		b.WriteString(", target " + escape(p.Target))
	}
	b.WriteString(": " + escape(diag.Cut(p.Message, maxSlackText/3)))
	for _, k := range p.keys {
		b.WriteString("\n" + k.name + ": " + escape(diag.Cut(k.text, maxSlackText/3)))
	}
	return json.Marshal(map[string]string{"text": diag.Cut(b.String(), maxSlackText)})
}

// alert is an alert of version 2 of Alertmanager's API.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    string            `json:"startsAt"`
}

// severities has the label severity for each level.
var severities = map[string]string{"ERROR": "critical", "WARN": "warning", "INFO": "info", "DEBUG": "info"}

// alertmanager returns an event as a list with one alert. Alertmanager ends the alert by its resolve_timeout.
func alertmanager(line []byte, host string) ([]byte, error) {
	p, err := parse(line)
	if err != nil {
		return nil, err
	}
	a := alert{
		Labels:      map[string]string{"alertname": "xdspub-" + p.Event, "event": p.Event, "severity": severities[p.Level], "job": "xdspub", "instance": host},
		Annotations: map[string]string{"summary": diag.Cut(p.Message, maxAnnotation)}, StartsAt: p.Time,
	}
	if p.Target != "" {
		a.Labels["target"] = p.Target
	}
	for _, k := range p.keys {
		a.Annotations[k.name] = diag.Cut(k.text, maxAnnotation)
	}
	return json.Marshal([]alert{a})
}
