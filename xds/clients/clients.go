// Package clients has the state of a server's clients: node, subscriptions, and acknowledged versions. The server
// makes these values, and views read them.
//
//	for _, c := range cache.Clients() {
//		fmt.Println(c.Node, c.InSync())
//	}
package clients

import (
	"fmt"
	"slices"
	"time"

	"xdspub/diag"
)

// Client is a connected or disconnected client. One connection is one Client, also if an Envoy asks several
// singleton services over the connection.
type Client struct {
	// Node is the id of the client's node, Cluster its cluster.
	Node    string `json:"node"`
	Cluster string `json:"cluster"`
	// UserAgent is the program, and its version: "envoy 1.40.0".
	UserAgent string `json:"user_agent"`
	// Address is the client's address, or the server's Unix socket.
	Address string `json:"address"`
	// Kind is the variant of the protocol: ads, delta-ads, grpc, delta-grpc or rest.
	Kind string `json:"kind"`
	// Parameters are the client's dynamic parameters, sent with names or derived from its node.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Since is the start of the connection, Gone its end; Gone is zero while the connection is open.
	Since time.Time `json:"since"`
	Gone  time.Time `json:"gone,omitzero"`
	// Subscriptions are in the order in which a change is sent.
	Subscriptions []Subscription `json:"subscriptions"`
}

// InSync reports whether each subscription is Synced or NotSent.
func (c *Client) InSync() bool {
	return !slices.ContainsFunc(c.Subscriptions, func(s Subscription) bool { return s.Sync != Synced && s.Sync != NotSent })
}

// Count returns how many subscriptions have the state s.
func (c *Client) Count(s Sync) int {
	n := 0
	for _, sub := range c.Subscriptions {
		if sub.Sync == s {
			n++
		}
	}
	return n
}

// Connected returns how many clients are connected.
func Connected(list []Client) int {
	connected, _ := Counts(list)
	return connected
}

// Fault returns a text with the number of connected clients that are not in sync; "" for none.
func Fault(list []Client) string {
	switch connected, behind := Counts(list); behind {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 of %d clients is not in sync", connected)
	default:
		return fmt.Sprintf("%d of %d clients are not in sync", behind, connected)
	}
}

// Counts returns how many clients are connected, and how many of these are not in sync.
func Counts(list []Client) (connected, behind int) {
	for _, c := range list {
		if c.Gone.IsZero() {
			connected++
			if !c.InSync() {
				behind++
			}
		}
	}
	return connected, behind
}

// Sync says whether a client runs the resources of a subscription, in the words of xdspub status.
type Sync string

const (
	// Rejected: the client's last answer was a NACK. The client runs its previous resources.
	Rejected Sync = "REJECTED"
	// Retrying: the client's last answer was a NACK, because the client has not fetched the code of a filter
	// yet. The client runs its previous resources, and gets the same response again.
	Retrying Sync = "RETRYING"
	// NoVariant: the source tree has resources for the subscription, but none for the client's dynamic
	// parameters. The client keeps its resources.
	NoVariant Sync = "NO VARIANT"
	// Stale: a response has not been sent, or has no acknowledgement yet.
	Stale Sync = "STALE"
	// NotSent: no resource of the subscription exists, which is no fault.
	NotSent Sync = "NOT SENT"
	// Synced: the client has acknowledged every resource of the subscription.
	Synced Sync = "SYNCED"
)

// Syncs lists all values of Sync, the worst first.
var Syncs = [...]Sync{Rejected, Retrying, NoVariant, Stale, NotSent, Synced}

// MostNames bounds the names that a Subscription lists.
const MostNames = 20

// Subscription is a client's subscription to a type, with its state.
type Subscription struct {
	Sync Sync   `json:"sync"`
	API  string `json:"api"` // such as CDS
	// All means that the client asks for all resources of the type. Names are some of the names that the client
	// asks for, sorted; Asked counts all names.
	All   bool     `json:"all"`
	Names []string `json:"names"`
	Asked int      `json:"asked"`
	// Missing are the first of the sorted names whose variants do not match the client; empty unless Sync is
	// NoVariant.
	Missing []string `json:"missing,omitempty"`
	// Version is the version that the server has for the client, Sent the version of the last response, and
	// Acknowledged the version of the last response that the client accepted.
	Version      string `json:"version"`
	Acknowledged string `json:"acknowledged"`
	Sent         string `json:"sent"`
	// Since is when the last response was sent or answered.
	Since time.Time `json:"since"`
	// Rejections counts the NACKs of all clients of the node for the type.
	Rejections uint64 `json:"rejections"`
	// Refusal is the last answer of the client if it is a NACK, and nil otherwise.
	Refusal *Refusal `json:"refusal"`
}

// Refusal is a NACK.
type Refusal struct {
	Version string    `json:"version"` // of the refused response
	Time    time.Time `json:"time"`
	Message string    `json:"message"` // of the client
	// Findings are about the resources that Message names. If Message names none, Findings are about the new
	// resources of the response.
	Findings diag.List `json:"findings"`
}

// Rejections counts the NACKs of the clients of a node for a type.
type Rejections struct {
	Node  string
	API   string
	Count uint64
}
