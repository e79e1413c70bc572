package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"xdspub/diag"
	"xdspub/source/settingsfile"
	"xdspub/store/waves"
)

// rolloutSection is the section of the waves in which the machines of a fleet get a change.
const rolloutSection = "rollout"

const (
	// exampleOfRollout is a rollout.
	exampleOfRollout = "{waves: [{label: tier=canary}, {percent: 10}], bake: 10m}"
	// defaultQuorum and defaultBake are the quorum and the bake time of a wave without these settings.
	defaultQuorum = 100
	defaultBake   = time.Minute
)

// rolloutKeys are the keys of the section, and waveKeys those of a wave.
var (
	rolloutKeys = []string{"waves", "quorum", "bake"}
	waveKeys    = []string{"name", "target", "label", "percent", "quorum", "bake"}
)

func (r *fileReader) readRollout(in settingsfile.Setting) {
	r.settings.Rollout = Value[waves.Plan]{Value: r.rollout(in), Origin: Origin{name: in.Key, file: &in}}
}

func (r *fileReader) rollout(in settingsfile.Setting) (p waves.Plan) {
	if in.Kind != settingsfile.Mapping {
		r.fail(in.Position, "rollout has waves, quorum and bake, such as %s", exampleOfRollout)
		return nil
	}
	before := len(r.wrong)
	usual := waves.Wave{Quorum: defaultQuorum, Bake: defaultBake}
	var list []settingsfile.Value
	for _, field := range in.Parts {
		switch field.Key {
		case "waves":
			if list = field.Parts; field.Kind != settingsfile.List || len(list) == 0 || len(list) > waves.Most {
				r.fail(field.Position, "waves is a list of up to %d waves, such as [{label: tier=canary}, {percent: 10}]", waves.Most)
			}
		case "quorum", "bake":
			r.ofWave(&usual, field)
		default:
			r.fail(field.Position, "%s", unknownKey(field.Key, "of rollout", rolloutKeys, "waves, quorum, bake"))
		}
	}
	if list == nil && len(r.wrong) == before {
		r.fail(in.Position, "rollout needs waves, as in %s", exampleOfRollout)
	}
	for _, part := range list {
		p = append(p, r.wave(part, usual))
	}
	if len(r.wrong) > before {
		return nil
	}
	checked, err := p.Checked()
	if empty, ok := errors.AsType[*waves.EmptyError](err); ok {
		r.fail(list[empty.Wave].Position, "invalid rollout: %v", empty)
	} else if size := checked.Size(); size > waves.MaxSize {
		r.fail(in.Position, "the waves have %d bytes, and %d are allowed, because each machine reads them: name fewer targets", size, waves.MaxSize)
	}
	return checked
}

// wave reads a wave. usual has the quorum and the bake time of a wave without its own.
func (r *fileReader) wave(v settingsfile.Value, usual waves.Wave) (w waves.Wave) {
	if w = usual; v.Kind != settingsfile.Mapping {
		r.fail(v.Position, "a wave has target, label or percent, such as {percent: 10}")
		return w
	}
	for _, field := range v.Parts {
		if slices.Contains(waveKeys, field.Key) {
			r.ofWave(&w, field)
		} else {
			r.fail(field.Position, "%s", unknownKey(field.Key, "of a wave", waveKeys, "name, target, label, percent, quorum, bake"))
		}
	}
	return w
}

// ofWave sets a field of a wave.
func (r *fileReader) ofWave(w *waves.Wave, field settingsfile.Value) {
	if field.Key == "target" {
		names, ok := field.Texts()
		if !ok || len(names) == 0 || len(names) > waves.MostTargets {
			r.fail(field.Position, "target is the name of a target, or a list of up to %d names", waves.MostTargets)
		}
		w.Targets = names
		return
	}
	if field.Kind != settingsfile.Text {
		r.fail(field.Position, "%s is a single value", field.Key)
		return
	}
	wrong := ""
	switch text := field.Text; field.Key {
	case "name":
		w.Name, wrong = text, waves.WrongName(text)
	case "label":
		w.Label, wrong = text, waves.WrongLabel(text)
	case "percent":
		w.Percent, wrong = percentage(text)
	case "quorum":
		w.Quorum, wrong = percentage(text)
	case "bake":
		bake, err := time.ParseDuration(text)
		if w.Bake = bake; err != nil || bake < 0 || bake > waves.MaxBake {
			wrong = fmt.Sprintf("write a time such as 10m, at most %s", waves.MaxBake)
		}
	}
	if wrong != "" {
		r.fail(field.Position, "invalid %s %q: %s", field.Key, diag.ClipLine(field.Text, 60), wrong)
	}
}

// percentage reads a percentage of machines. wrong says what to write instead.
func percentage(text string) (n int, wrong string) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		wrong = "write a whole number from 1 to 100, a percentage of machines"
	}
	return n, wrong
}

// rolloutSchema returns the schema of the setting.
func rolloutSchema() Schema {
	percentage := func(about string) Schema {
		return Schema{"description": about, "type": "integer", "minimum": 1, "maximum": 100}
	}
	bake := Schema{"description": "how long a wave waits after its quorum, such as 10m", "type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`}
	quorum := percentage("the percentage of the machines of a wave that must acknowledge, of those that answer")
	return Schema{
		"description": "the waves in which the machines of --store get a change; a last wave has all other machines", "type": "object",
		"required": []string{"waves"}, "additionalProperties": false, "properties": Schema{
			"quorum": quorum, "bake": bake,
			"waves": Schema{"type": "array", "minItems": 1, "maxItems": waves.Most, "items": Schema{
				"type": "object", "additionalProperties": false, "properties": Schema{
					"name":    Schema{"description": "the name that views show", "type": "string", "pattern": waves.NamePattern, "maxLength": waves.MaxText},
					"target":  textOrList(Schema{"type": "string"}, 1, "machines of these targets"),
					"label":   Schema{"description": "machines with this --label", "type": "string", "pattern": waves.LabelPattern, "maxLength": waves.MaxText},
					"percent": percentage("this percentage of all machines, counted from 0, by the hash of the name"),
					"quorum":  quorum, "bake": bake,
				},
			}},
		},
	}
}
