package substitution

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const coalesceHelp = `write an argument as in %COALESCE({"operators": ["REQUESTED_SERVER_NAME", {"command": "REQ", "param": ":authority"}]})%`

// coalesce checks an argument that is a JSON object with a list of commands. Envoy crashes if the argument is
// neither an object nor a list.
func coalesce(c call) *Fault {
	root, err := decode(c.arg)
	if err != nil {
		return &Fault{Message: err.Error(), Help: coalesceHelp}
	}
	object, _ := root.(map[string]any)
	operators, ok := object["operators"].([]any)
	if !ok || len(operators) == 0 {
		return &Fault{Message: "the argument is not a JSON object with a list of operators", Help: coalesceHelp}
	}
	for i, o := range operators {
		if f := c.of.operator(o, Extensions{NoCEL: c.x.NoCEL}); f != nil {
			f.Message = fmt.Sprintf("operator %d: %s", i+1, f.Message)
			return f
		}
	}
	return nil
}

// operator checks an element of the list: the name of a command, or an object with the command. Commands of
// formatters are unknown here, as in Envoy.
func (l *Language) operator(o any, x Extensions) *Fault {
	if name, ok := o.(string); ok {
		return call{name: name, of: l, x: x}.check()
	}
	object, ok := o.(map[string]any)
	name, isString := object["command"].(string)
	if !ok || !isString {
		return &Fault{Message: "it is neither a command nor an object with a command", Help: coalesceHelp}
	}
	c := call{name: name, of: l, x: x}
	if param, given := object["param"]; given {
		if c.arg, ok = param.(string); !ok {
			return &Fault{Message: "param is not a string", Help: coalesceHelp}
		}
	}
	if length, given := object["max_length"]; given {
		number, _ := length.(json.Number)
		if n, err := strconv.ParseInt(number.String(), 10, 64); err != nil || n <= 0 {
			return &Fault{Message: "max_length is not a positive whole number", Help: coalesceHelp}
		}
		c.length = true
	}
	return c.check()
}

// decode reads JSON as Envoy does. Syntax is strict, but of two equal names the last wins. decode refuses a whole
// number above the range of int64 that is in the range of uint64, and a number above the range of float64.
func decode(text string) (any, error) {
	if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, fmt.Errorf("the argument is not valid JSON")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("the argument is not valid JSON: %w", err)
	}
	return root, numbers(root)
}

func numbers(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			if err := numbers(element); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := numbers(element); err != nil {
				return err
			}
		}
	case json.Number:
		n, err := strconv.ParseUint(v.String(), 10, 64)
		_, errFloat := v.Float64()
		if err == nil && n > math.MaxInt64 || errFloat != nil {
			return fmt.Errorf("a number in the JSON is too large")
		}
	}
	return nil
}
