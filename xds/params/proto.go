package params

import (
	"errors"
	"fmt"
	"strconv"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// maxDepth and maxParts bound the messages that Parse takes. TP2 sets no bounds ("control planes do not need to
// actually support that full arbitrary power"). Constraints that people write stay far below.
const (
	maxDepth = 32
	maxParts = 10_000
)

// MaxText bounds the bytes of a key or a value, in constraints and in Parameters.
const MaxText = 1_024

// InvalidError means that a DynamicParameterConstraints is invalid.
type InvalidError struct {
	// Path is the field at fault, such as and_constraints.constraints[1].constraint.key; empty for the message
	// itself.
	Path string
	// Reason names the fault.
	Reason string
}

func (e *InvalidError) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Parse returns the Constraints of a message. A nil message has no constraint, and neither has a message without a
// type, whose meaning TP2 leaves open. The error is an *InvalidError.
func Parse(m *discoveryv3.DynamicParameterConstraints) (Constraints, error) {
	p := parser{parts: maxParts}
	return p.parse(m, "", maxDepth)
}

// CheckKey returns an error for a key that is empty or too long.
func CheckKey(key string) error {
	if key == "" {
		return errors.New("a constraint needs a key")
	}
	return checkText("key", key)
}

// CheckValue returns an error for a value that is too long.
func CheckValue(value string) error { return checkText("value", value) }

func checkText(noun, text string) error {
	if len(text) > MaxText {
		return fmt.Errorf("a %s has at most %d bytes, and this one %d", noun, MaxText, len(text))
	}
	return nil
}

// Check returns an error if c has more than maxParts constraints of keys. And and Or can join so many.
func (c Constraints) Check() error {
	parts := 0
	c.each(func(Constraints) { parts++ })
	if parts > maxParts {
		return errTooManyParts
	}
	return nil
}

var errTooManyParts = fmt.Errorf("the constraints have more than %d parts", maxParts)

// parser counts the messages that Parse may still visit.
type parser struct{ parts int }

func (p *parser) parse(m *discoveryv3.DynamicParameterConstraints, path string, depth int) (Constraints, error) {
	p.parts--
	switch {
	case p.parts < 0:
		return Constraints{}, &InvalidError{path, errTooManyParts.Error()}
	case depth == 0:
		return Constraints{}, &InvalidError{path, fmt.Sprintf("constraints are nested deeper than %d", maxDepth)}
	}
	switch t := m.GetType().(type) {
	case *discoveryv3.DynamicParameterConstraints_Constraint:
		return single(t.Constraint, field(path, "constraint"))
	case *discoveryv3.DynamicParameterConstraints_AndConstraints:
		list, err := p.list(t.AndConstraints, field(path, "and_constraints"), depth)
		return And(list...), err
	case *discoveryv3.DynamicParameterConstraints_OrConstraints:
		list, err := p.list(t.OrConstraints, field(path, "or_constraints"), depth)
		return Or(list...), err
	case *discoveryv3.DynamicParameterConstraints_NotConstraints:
		c, err := p.parse(t.NotConstraints, field(path, "not_constraints"), depth-1)
		return Not(c), err
	}
	return Constraints{}, nil
}

func (p *parser) list(m *discoveryv3.DynamicParameterConstraints_ConstraintList, path string, depth int) (list []Constraints, err error) {
	for i, part := range m.GetConstraints() {
		c, err := p.parse(part, field(path, "constraints["+strconv.Itoa(i)+"]"), depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func single(m *discoveryv3.DynamicParameterConstraints_SingleConstraint, path string) (Constraints, error) {
	key, is := m.GetKey(), m.GetValue()
	if err := CheckKey(key); err != nil {
		if key != "" {
			path = field(path, "key")
		}
		return Constraints{}, &InvalidError{path, err.Error()}
	}
	if err := CheckValue(is); err != nil {
		return Constraints{}, &InvalidError{field(path, "value"), err.Error()}
	}
	switch m.GetConstraintType().(type) {
	case *discoveryv3.DynamicParameterConstraints_SingleConstraint_Value:
		return Value(key, is), nil
	case *discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_:
		return Exists(key), nil
	}
	return Constraints{}, &InvalidError{path, "a constraint needs value or exists"}
}

func field(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Proto returns the message of c; nil if c has no constraint.
func (c Constraints) Proto() *discoveryv3.DynamicParameterConstraints {
	m := &discoveryv3.DynamicParameterConstraints{}
	switch c.kind() {
	case all:
		return nil
	case equals, exists:
		m.Type = &discoveryv3.DynamicParameterConstraints_Constraint{Constraint: c.single()}
	case not:
		m.Type = &discoveryv3.DynamicParameterConstraints_NotConstraints{NotConstraints: c.of[0].Proto()}
	case and:
		m.Type = &discoveryv3.DynamicParameterConstraints_AndConstraints{AndConstraints: c.protos()}
	default: // never is an OR of nothing
		m.Type = &discoveryv3.DynamicParameterConstraints_OrConstraints{OrConstraints: c.protos()}
	}
	return m
}

func (c Constraints) single() *discoveryv3.DynamicParameterConstraints_SingleConstraint {
	m := &discoveryv3.DynamicParameterConstraints_SingleConstraint{Key: c.key}
	if c.op == equals {
		m.ConstraintType = &discoveryv3.DynamicParameterConstraints_SingleConstraint_Value{Value: c.is}
	} else {
		m.ConstraintType = &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_{
			Exists: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists{},
		}
	}
	return m
}

func (c Constraints) protos() *discoveryv3.DynamicParameterConstraints_ConstraintList {
	list := &discoveryv3.DynamicParameterConstraints_ConstraintList{}
	for _, part := range c.of {
		list.Constraints = append(list.Constraints, part.Proto())
	}
	return list
}
