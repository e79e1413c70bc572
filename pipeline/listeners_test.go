package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/render"
)

// listenersAt are documents of listeners, each "name port".
func listenersAt(list ...string) string {
	var documents []string
	for _, l := range list {
		name, port, _ := strings.Cut(l, " ")
		documents = append(documents, strings.NewReplacer("name: in, address", "name: "+name+", address", "10000", port).Replace(fmt.Sprintf(listener, "")))
	}
	return tree(append(documents, blue, blueEndpoints, fmt.Sprintf(routesTo, "blue"))...)
}

// listed returns the published LDS file.
func (s *fixture) listed() string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.p.options.Out, "lds/lds.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// TestAddressesMove: who leaves an address goes out before who takes it; in the
// end the file is the same as that of a new directory.
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
			s := newFixture(t, nil)
			s.tree(listenersAt(strings.Split(c.old, ",")...))
			s.publish()
			s.tree(listenersAt(strings.Split(c.new, ",")...))
			s.want("the change", c.want)
			s.want("nothing changed", "")
			cold := newFixture(t, nil)
			cold.tree(listenersAt(strings.Split(c.new, ",")...))
			cold.publish()
			if got, want := s.listed(), cold.listed(); got != want {
				t.Errorf("the end is %s, want %s", got, want)
			}
		})
	}
}

func TestAddressesSwap(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"a 1,b 2", "a 2,b 1", `listeners "a" and "b" take each other's address: Envoy would refuse all of them`},
		{"a 1,b 2,c 3", "a 2,b 3,c 1", `listeners "a" and "b" and "c" take each other's address: Envoy would refuse all of them`},
	} {
		s := newFixture(t, nil)
		s.tree(listenersAt(strings.Split(c.old, ",")...))
		s.publish()
		s.tree(listenersAt(strings.Split(c.new, ",")...))
		checked, err := s.p.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		plan, list, err := s.p.Plan(t.Context(), checked.Snapshot, s.now)
		if plan != nil || err != nil || len(list) != 1 || list[0].Message != c.want || list[0].Line == 0 {
			t.Errorf("%s to %s: %v, %v", c.old, c.new, list, err)
		}
	}
}

// TestRoutesWaitForClusters: routes that come back before their file was trimmed
// are still followed by a listener that drains.
func TestRoutesWaitForClusters(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints, fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(listener, "a")))
	s.publish()
	s.tree(tree(blue, blueEndpoints))
	s.publish()
	s.tree(tree(blue, blueEndpoints, green, greenEndpoints, fmt.Sprintf(routesTo, "green"), fmt.Sprintf(listener, "a")))
	s.want("routes to a new cluster come back", `
new names: eds/green/eds.json
clusters: cds/cds.json
routes that no listener asks for yet: rds/main/rds.json
listeners: lds/lds.json
`)
}

// TestEditedByHand: what somebody put into a published file does not go out again
// unseen, and does not stop the publishing.
func TestEditedByHand(t *testing.T) {
	s := newFixture(t, nil)
	s.tree(tree(blue, blueEndpoints, layer))
	s.publish()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(s.p.options.Out, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const cluster = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", `
	write("cds/cds.json", `{"resources": [`+cluster+`"name": "old"}, `+cluster+`"name": "old"}, `+cluster+`"name": "good"}, `+cluster+`"name": "bad", "connect_timeout": "-3s"}, `+cluster+`"type": "STATIC"}]}`)
	write("lds/lds.json", `{"resources": [`+cluster+`"name": "stray"}]}`)
	write("rtds/copy/rtds.json", `{"resources": [{"@type": "type.googleapis.com/envoy.service.runtime.v3.Runtime", "name": "flags"}]}`)
	write("rtds/broken/rtds.json", "{")
	s.publish()
	if got := fmt.Sprint(s.clusters()); got != "[blue good]" {
		t.Errorf("clusters %s", got)
	}
	names, err := RuntimeLayers(s.p.options.Out, render.JSON)
	if err == nil || !strings.Contains(err.Error(), "rtds/broken/rtds.json") {
		t.Errorf("a layer that can't be read: %v, %v", names, err)
	}
	if err := os.Remove(filepath.Join(s.p.options.Out, "rtds/broken/rtds.json")); err != nil {
		t.Fatal(err)
	}
	if names, err := RuntimeLayers(s.p.options.Out, render.JSON); err != nil || fmt.Sprint(names) != "[flags]" {
		t.Errorf("layers %v, %v", names, err)
	}
	s.want("nothing changed", "")
}

// TestSwapBehindAnother: b and c swap their addresses, and a, first by name, takes
// another address of c.
func TestSwapBehindAnother(t *testing.T) {
	more := func(document, port string) string {
		return strings.TrimSuffix(document, "}") + `, additional_addresses: [{address: {socket_address: {address: 127.0.0.1, port_value: ` + port + `}}}]}`
	}
	at := func(name, port string) string {
		return strings.NewReplacer("name: in, address", "name: "+name+", address", "10000", port).Replace(fmt.Sprintf(listener, ""))
	}
	s := newFixture(t, nil)
	routes := fmt.Sprintf(routesTo, "blue")
	s.tree(tree(blue, blueEndpoints, routes, at("a", "1"), at("b", "2"), more(at("c", "3"), "4")))
	s.publish()
	s.tree(tree(blue, blueEndpoints, routes, at("a", "4"), at("b", "3"), at("c", "2")))
	checked, err := s.p.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, list, err := s.p.Plan(t.Context(), checked.Snapshot, s.now)
	if plan != nil || err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Message, `listeners "b" and "c" take`) {
		t.Error(plan, list, err)
	}
}
