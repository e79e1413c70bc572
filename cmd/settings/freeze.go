package settings

import (
	"errors"
	"fmt"

	"xdspub/diag"
	"xdspub/source/settingsfile"
	"xdspub/watch/freeze"
)

// freezeSection is the section about the times during which changes wait.
const freezeSection = "freeze"

// freezeKeys are the keys of a window.
var freezeKeys = []string{"from", "to", "zone", "reason"}

// exampleOfFreeze is an element of freeze.
const exampleOfFreeze = "{from: Friday 17:00, to: Monday 8:00, zone: Europe/Berlin}"

func (r *fileReader) readFreeze(in settingsfile.Setting) {
	r.settings.Freeze = Value[freeze.Windows]{Value: r.windows(in), Origin: Origin{name: in.Key, file: &in}}
}

func (r *fileReader) windows(in settingsfile.Setting) (all freeze.Windows) {
	switch {
	case in.Kind != settingsfile.List:
		r.fail(in.Position, "freeze is a list of windows, such as [%s]", exampleOfFreeze)
		return nil
	case len(in.Parts) > freeze.Most:
		r.fail(in.Parts[freeze.Most].Position, "there are more than %d windows", freeze.Most)
		return nil
	}
	before := len(r.wrong)
	for _, part := range in.Parts {
		all = append(all, r.window(part))
	}
	if len(r.wrong) > before {
		return nil
	}
	if overlap, ok := errors.AsType[*freeze.OverlapError](all.Check()); ok {
		r.fail(in.Parts[overlap.Index].Position, "invalid freeze: %v", overlap)
	}
	return all
}

// window reads a window.
func (r *fileReader) window(v settingsfile.Value) (w freeze.Window) {
	if v.Kind != settingsfile.Mapping {
		r.fail(v.Position, "a window has from, to, zone and reason, such as %s", exampleOfFreeze)
		return w
	}
	before, has := len(r.wrong), make(map[string]bool)
	for _, field := range v.Parts {
		has[field.Key] = true
		if err := setWindow(&w, field); err != nil {
			r.fail(field.Position, "%s", err)
		}
	}
	for _, key := range freezeKeys[:3] {
		if !has[key] {
			r.fail(v.Position, "a window needs %q, as in %s", key, exampleOfFreeze)
		}
	}
	if len(r.wrong) == before {
		if err := w.Check(); err != nil {
			r.fail(v.Position, "invalid freeze: %v", err)
		}
	}
	return w
}

// setWindow sets a field of a window.
func setWindow(w *freeze.Window, field settingsfile.Value) (err error) {
	if field.Kind != settingsfile.Text {
		return fmt.Errorf("%q is a text", diag.ClipLine(field.Key, 60))
	}
	switch field.Key {
	case "from":
		w.From, err = freeze.ParseMoment(field.Text)
	case "to":
		w.To, err = freeze.ParseMoment(field.Text)
	case "zone":
		w.Zone, err = freeze.ZoneNamed(field.Text)
	case "reason":
		w.Reason = field.Text
	default:
		return errors.New(unknownKey(field.Key, "of a window", freezeKeys, "from, to, zone and reason"))
	}
	if err != nil {
		return fmt.Errorf("invalid %s %q: %w", field.Key, diag.ClipLine(field.Text, 60), err)
	}
	return nil
}

// freezeSchema returns the schema of the setting.
func freezeSchema() Schema {
	moment := func(about string) Schema {
		return Schema{"description": about + ": a weekday and a time, or a date and a time", "type": "string", "pattern": freeze.Pattern}
	}
	return Schema{
		"description": "times in which nothing is published", "type": "array", "maxItems": freeze.Most,
		"items": Schema{
			"type": "object", "required": freezeKeys[:3], "additionalProperties": false, "properties": Schema{
				"from": moment("when the window begins"), "to": moment("when the window ends"),
				"zone":   Schema{"description": "IANA time zone of from and to, such as Europe/Berlin", "type": "string", "minLength": 1, "not": Schema{"const": "Local"}},
				"reason": Schema{"description": "why, as every view shows it", "type": []string{"string", "number", "boolean"}, "maxLength": freeze.MaxText},
			},
		},
	}
}
