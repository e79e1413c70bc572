// Package clients is what a server knows of its clients: who they are, what each asks for, and
// which of it each runs. The server makes these values, and whoever shows them reads them.
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

// Client is a client that is connected, or was. It has one address: an Envoy that asks singleton
// services over one connection is one Client.
type Client struct {
	// Node is the id of the client's node, Cluster its cluster.
	Node    string `json:"node"`
	Cluster string `json:"cluster"`
	// UserAgent is the program, and its version: "envoy 1.40.0".
	UserAgent string `json:"user_agent"`
	// Address is that of the client, or the Unix socket that it came by.
	Address string `json:"address"`
	// Kind is the variant of the protocol: ads, delta-ads, grpc, delta-grpc or rest.
	Kind string `json:"kind"`
	// Parameters are its dynamic parameters: those that it sends with names, or those of its node.
	Parameters map[string]string `json:"parameters,omitempty"`
	Since      time.Time         `json:"since"`
	// Gone is when the connection ended; zero while it is there.
	Gone time.Time `json:"gone,omitzero"`
	// Subscriptions are in the order in which a change is sent.
	Subscriptions []Subscription `json:"subscriptions"`
}

// InSync reports whether the client runs all that it asks for, as far as that exists.
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
	connected, _ := count(list)
	return connected
}

// Fault says how many of the connected clients are not in sync; empty if all are.
func Fault(list []Client) string {
	switch connected, behind := count(list); behind {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 of %d clients is not in sync", connected)
	default:
		return fmt.Sprintf("%d of %d clients are not in sync", behind, connected)
	}
}

// count returns how many clients are connected, and how many of these are not in sync.
func count(list []Client) (connected, behind int) {
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

// Sync says whether a client runs what it asks for, in the words that xdspub status has for
// published files.
type Sync string

const (
	// Rejected: the last answer of the client was a NACK. It runs what it had before.
	Rejected Sync = "REJECTED"
	// Retrying: the last answer of the client was a NACK, since it has not fetched the code of a filter yet. It
	// runs what it had before, and is sent the same once more.
	Retrying Sync = "RETRYING"
	// NoVariant: the source tree has resources of the type that the client asks for, and none of them is for
	// its dynamic parameters. It keeps what it has.
	NoVariant Sync = "NO VARIANT"
	// Stale: the client has not acknowledged yet what it was sent, or is to be sent.
	Stale Sync = "STALE"
	// NotSent: nothing of what the client asks for exists. That is no fault.
	NotSent Sync = "NOT SENT"
	// Synced: the client has acknowledged all that it asks for.
	Synced Sync = "SYNCED"
)

// Syncs lists all values of Sync, the worst first.
var Syncs = [...]Sync{Rejected, Retrying, NoVariant, Stale, NotSent, Synced}

// MostNames is how many names a Subscription lists.
const MostNames = 20

// Subscription is what a client asks for of one type, and what became of it.
type Subscription struct {
	Sync Sync   `json:"sync"`
	API  string `json:"api"` // such as CDS
	// All means that the client asks for all resources of the type. Names are the first of those
	// that it asks for by name, sorted, and Asked is how many these are.
	All   bool     `json:"all"`
	Names []string `json:"names"`
	Asked int      `json:"asked"`
	// Missing are the first of the resources that are for other clients, sorted, if the state is NoVariant.
	Missing []string `json:"missing,omitempty"`
	// Version is that of what is served. Acknowledged is the version of the last response that
	// the client has taken, Sent that of the last response.
	Version      string `json:"version"`
	Acknowledged string `json:"acknowledged"`
	Sent         string `json:"sent"`
	// Since is when the last response was sent or answered.
	Since time.Time `json:"since"`
	// Rejections counts the NACKs of this node, of whichever client.
	Rejections uint64 `json:"rejections"`
	// Refusal is the last answer, where that was a NACK.
	Refusal *Refusal `json:"refusal"`
}

// Refusal is a NACK.
type Refusal struct {
	Version string    `json:"version"` // of the response
	Time    time.Time `json:"time"`
	Message string    `json:"message"` // the client's
	// Findings are at the resources that the client names, or else at those that were new to it.
	Findings diag.List `json:"findings"`
}

// Rejections counts the NACKs of the clients of a node for a type.
type Rejections struct {
	Node  string
	API   string
	Count uint64
}
