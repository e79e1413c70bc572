package syntax

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

var wholeNumber = regexp.MustCompile(`^[-+]?(?:0x[0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$`)

var yamlBoolean = regexp.MustCompile(`^(?:[yn]|[YN]|[Yy]es|YES|[Nn]o|NO|[Tt]rue|TRUE|[Ff]alse|FALSE|[Oo]n|ON|[Oo]ff|OFF)$`)

var yamlTrue = regexp.MustCompile(`^(?:[yY]|[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$`)

var yamlNull = regexp.MustCompile(`^(?:~|[Nn]ull|NULL|)$`)

// IsText reports whether Envoy takes a scalar of YAML for text. It ignores tags.
func IsText(n *yaml.Node) bool {
	if n.Style&^yaml.TaggedStyle != 0 {
		return true
	}
	if wholeNumber.MatchString(n.Value) {
		_, err := strconv.ParseInt(n.Value, 0, 32)
		return err != nil
	}
	return !yamlBoolean.MatchString(n.Value) && !yamlNull.MatchString(n.Value)
}

// scalar is a scalar of YAML as Envoy reads it.
func scalar(n *yaml.Node) jsontext.Value {
	switch {
	case IsText(n):
		text, _ := json.Marshal(n.Value) // text: can be written
		return text
	case yamlNull.MatchString(n.Value):
		return jsontext.Value("null")
	case wholeNumber.MatchString(n.Value):
		whole, _ := strconv.ParseInt(n.Value, 0, 32) // isText has parsed it
		return jsontext.Value(strconv.FormatInt(whole, 10))
	}
	return strconv.AppendBool(nil, yamlTrue.MatchString(n.Value))
}
