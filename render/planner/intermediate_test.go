package planner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/fixture"
)

// listenersAt returns documents of listeners. Each element of list is "name port".
func listenersAt(list ...string) string {
	var documents []string
	for _, l := range list {
		name, port, _ := strings.Cut(l, " ")
		documents = append(documents, strings.NewReplacer("name: in, address", "name: "+name+", address", "10000", port).Replace(fmt.Sprintf(fixture.Listener, "")))
	}
	return fixture.Tree(append(documents, fixture.Blue, fixture.BlueEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"))...)
}

// listed returns the published LDS file.
func listed(s *fixture.Fixture) string {
	s.T.Helper()
	data, err := os.ReadFile(filepath.Join(s.Options.Out, "lds/lds.json"))
	if err != nil {
		s.T.Fatal(err)
	}
	return string(data)
}

// TestAddressesMove checks that a plan publishes the listener that leaves an address before the listener that
// takes it. In the end the file is the same as in a new directory.
func TestAddressesMove(t *testing.T) {
	const step, last = "listeners that leave an address: lds/lds.json\n", "listeners: lds/lds.json\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing moves", "a 1,b 2", "a 1,b 2,c 3", last},
		{"one takes another's", "a 1,b 2", "a 2,b 3", step + last},
		{"a new one takes it", "b 2", "a 2,b 3", step + last},
		{"a chain", "a 1,b 2,c 3", "a 2,b 3,c 4", step + step + last},
		{"the same whatever the names", "a 1,b 2", "a 3,b 1", step + last},
		{"who had it is removed", "b 2,c 3", "a 2,c 3", last},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fixture.New(t, nil)
			s.Tree(listenersAt(strings.Split(c.old, ",")...))
			s.Publish()
			s.Tree(listenersAt(strings.Split(c.new, ",")...))
			s.Want("the change", c.want)
			s.Want("nothing changed", "")
			cold := fixture.New(t, nil)
			cold.Tree(listenersAt(strings.Split(c.new, ",")...))
			cold.Publish()
			if got, want := listed(s), listed(cold); got != want {
				t.Errorf("the end is %s, want %s", got, want)
			}
		})
	}
}

func TestAddressesSwap(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"a 1,b 2", "a 2,b 1", `listeners "a" and "b" exchange their addresses: Envoy would reject all of them`},
		{"a 1,b 2,c 3", "a 2,b 3,c 1", `listeners "a" and "b" and "c" exchange their addresses: Envoy would reject all of them`},
	} {
		s := fixture.New(t, nil)
		s.Tree(listenersAt(strings.Split(c.old, ",")...))
		s.Publish()
		s.Tree(listenersAt(strings.Split(c.new, ",")...))
		checked, err := s.Checked.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		plan, list, err := s.P.Plan(t.Context(), checked.Snapshot, s.Now)
		if plan != nil || err != nil || len(list) != 1 || list[0].Message != c.want || list[0].Line == 0 {
			t.Errorf("%s to %s: %v, %v", c.old, c.new, list, err)
		}
	}
}

// TestSwapBehindAnother checks a plan in which b and c swap their addresses, and a, the first by name, takes
// another address of c.
func TestSwapBehindAnother(t *testing.T) {
	more := func(document, port string) string {
		return strings.TrimSuffix(document, "}") + `, additional_addresses: [{address: {socket_address: {address: 127.0.0.1, port_value: ` + port + `}}}]}`
	}
	at := func(name, port string) string {
		return strings.NewReplacer("name: in, address", "name: "+name+", address", "10000", port).Replace(fmt.Sprintf(fixture.Listener, ""))
	}
	s := fixture.New(t, nil)
	routes := fmt.Sprintf(fixture.RoutesTo, "blue")
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, routes, at("a", "1"), at("b", "2"), more(at("c", "3"), "4")))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, routes, at("a", "4"), at("b", "3"), at("c", "2")))
	checked, err := s.Checked.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, list, err := s.P.Plan(t.Context(), checked.Snapshot, s.Now)
	if plan != nil || err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Message, `listeners "b" and "c" exchange`) {
		t.Error(plan, list, err)
	}
}
