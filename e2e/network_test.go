package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
)

// The networks of a node. Each is a bridge in the network namespace of the test.
const (
	peers     = "peers"   // for the other nodes
	clientsOf = "clients" // for clients, and for the test
)

// network connects nodes of an etcd, each in a network namespace.
type network struct {
	t      *testing.T
	places []etcdtest.Place // by node
}

// newNetwork makes the network. The test must have a network namespace of its own, as by unshare --net.
func newNetwork(t *testing.T, nodes int) *network {
	t.Helper()
	n := &network{t: t}
	n.ip("link", "set", "lo", "up")
	for _, bridge := range []string{peers, clientsOf} {
		n.ip("link", "add", bridge, "type", "bridge")
		n.ip("link", "set", bridge, "up")
	}
	n.ip("addr", "add", "10.87.0.1/24", "dev", clientsOf)
	for i := range nodes {
		holder := start(t, "unshare", "--net", "sleep", "infinity") // keeps the namespace while the node is down
		pid := fmt.Sprint(holder.cmd.Process.Pid)
		envoytest.Eventually(t, patience, "the namespace is there", func() (bool, string) {
			own, _ := os.Readlink("/proc/self/ns/net")
			is, err := os.Readlink("/proc/" + pid + "/ns/net")
			return err == nil && is != own, fmt.Sprint(is, err)
		})
		at := etcdtest.Place{Host: fmt.Sprint("10.87.0.", 10+i), Peer: fmt.Sprint("10.87.1.", 10+i), Enter: []string{"nsenter", "--net=/proc/" + pid + "/ns/net"}}
		for bridge, address := range map[string]string{peers: at.Peer, clientsOf: at.Host} {
			n.ip("link", "add", cable(bridge, i), "type", "veth", "peer", "name", bridge, "netns", pid)
			n.ip("link", "set", cable(bridge, i), "master", bridge, "up")
			n.run(append(at.Enter, "ip", "addr", "add", address+"/24", "dev", bridge)...)
			n.run(append(at.Enter, "ip", "link", "set", bridge, "up")...)
		}
		n.run(append(at.Enter, "ip", "link", "set", "lo", "up")...)
		n.places = append(n.places, at)
	}
	return n
}

// cable returns the name of the interface of a bridge that leads to a node.
func cable(bridge string, node int) string { return fmt.Sprint(bridge, node) }

func (n *network) ip(args ...string) { n.t.Helper(); n.run(append([]string{"ip"}, args...)...) }

func (n *network) run(command ...string) {
	n.t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// cut disconnects a node from a bridge. Packets between the node and the bridge are then lost.
func (n *network) cut(node int, bridge string) { n.ip("link", "set", cable(bridge, node), "nomaster") }

// heal connects all nodes.
func (n *network) heal() {
	for i := range n.places {
		for _, bridge := range []string{peers, clientsOf} {
			n.ip("link", "set", cable(bridge, i), "master", bridge)
		}
	}
}
