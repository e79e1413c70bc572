package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/serve/cache"
	"xdspub/serve/memory"
	"xdspub/serve/turns"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

const mediaType = "application/json"

// largest is the largest size of a request in bytes, as for gRPC. An Envoy sends 77 kB, mostly names of
// extensions.
const largest = 4 << 20

// request is a parsed DiscoveryRequest.
type request struct {
	cache.Question                 // Names are sorted and unique
	account        *memory.Account // holds the names
}

// read reads a request for resources of a type. If err is not nil, status is the HTTP status of the answer.
func read(w http.ResponseWriter, r *http.Request, of *xds.Type) (q *request, status int, err error) {
	if r.Method != http.MethodPost {
		return nil, http.StatusMethodNotAllowed, errors.New("a discovery request is a POST")
	}
	if is, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || is != mediaType {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("a discovery request is JSON: Content-Type must be %s, not %q",
			mediaType, r.Header.Get("Content-Type"))
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Encoding %q is not supported: send the request without an encoding", coding)
	}
	q = newRequest(of)
	q.account = memory.Of(r.Context())
	body := &held{Reader: http.MaxBytesReader(w, r.Body, largest), account: q.account, turns: turns.Of(r.Context()), ctx: r.Context()}
	defer body.close()
	if err := q.parse(body); err != nil {
		if _, noMemory := errors.AsType[*memory.Refusal](err); noMemory {
			return nil, http.StatusServiceUnavailable, err
		}
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", largest)
		}
		return nil, http.StatusBadRequest, fmt.Errorf("the body is not a discovery request: %w", err)
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		q.Address = "unix:" + local.String()
	} else {
		q.Address = host // without the port, because each request may use another connection
	}
	q.finish(host)
	return q, 0, nil
}

func newRequest(of *xds.Type) *request {
	return &request{Question: cache.Question{Type: of, Node: &corev3.Node{}}}
}

// held is a request body. Its account holds the bytes read so far. The request holds a turn while it works
// between two reads.
type held struct {
	io.Reader
	account *memory.Account
	bytes   int
	turns   *turns.Client
	ctx     context.Context // of the request
	turn    *turns.Turn     // nil if the request has no turn
}

func (h *held) Read(p []byte) (int, error) {
	h.giveTurn()
	n, err := h.Reader.Read(p)
	var gone error
	if h.turn, gone = h.turns.Take(h.ctx); gone != nil {
		return 0, gone
	}
	if refused := h.account.Take(n); refused != nil {
		return 0, refused
	}
	h.bytes += n
	return n, err
}

// giveTurn gives back the turn.
func (h *held) giveTurn() {
	h.turn.Give()
	h.turn = nil
}

// close gives back the turn and the bytes of the body.
func (h *held) close() {
	h.giveTurn()
	h.account.Give(h.bytes)
}

// heldByName is the memory for a name in a request, in bytes, without its text.
const heldByName = 64

// largestMessage is the largest JSON of a message in a request, in bytes. A decoded message takes many times
// as much memory.
const largestMessage = 64 << 10

// parse parses the JSON of a DiscoveryRequest and skips unused fields. protojson would decode hundreds of
// extensions for each request.
func (q *request) parse(body io.Reader) error {
	d := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true)) // checking for duplicates would keep all names
	err := members(d, func(name string) (err error) {
		switch name {
		case "version_info", "versionInfo":
			q.Version, err = text(d)
		case "type_url", "typeUrl":
			var url string
			if url, err = text(d); err == nil && url != "" && xds.TypeOfURL(url) != q.Type {
				return fmt.Errorf("type_url is %q; this path has resources of type %q", diag.Clip(url, diag.MaxWord), q.Type.URL())
			}
		case "resource_names", "resourceNames":
			err = q.readNames(d)
		case "resource_locators", "resourceLocators":
			if d.PeekKind() != 'n' {
				return errors.New("resource_locators: REST clients get the resources for their node; use gRPC for resource locators")
			}
			err = d.SkipValue()
		case "node":
			err = q.readNode(d)
		case "error_detail", "errorDetail":
			err = q.readError(d)
		default: // including fields of later Envoys
			err = d.SkipValue()
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return errors.Join(errors.New("the body continues after the request"), err)
	}
	return nil
}

func (q *request) readNames(d *jsontext.Decoder) error {
	if open, err := enter(d, '['); !open {
		return err
	}
	for d.PeekKind() != ']' {
		name, err := text(d)
		if err != nil {
			return err
		}
		if err := q.account.Take(heldByName + len(name)); err != nil {
			return err
		}
		q.Names = append(q.Names, name)
	}
	_, err := d.ReadToken()
	return err
}

func (q *request) readNode(d *jsontext.Decoder) error {
	return members(d, func(name string) (err error) {
		switch name {
		case "id":
			q.Node.Id, err = text(d)
		case "cluster":
			q.Node.Cluster, err = text(d)
		case "locality":
			q.Node.Locality = &corev3.Locality{}
			err = message(d, q.Node.Locality)
		case "metadata":
			q.Node.Metadata = &structpb.Struct{}
			err = message(d, q.Node.Metadata)
		case "user_agent_name", "userAgentName":
			q.Node.UserAgentName, err = text(d)
			q.Envoy = q.Node.UserAgentName == "envoy"
		case "user_agent_version", "userAgentVersion":
			var version string
			version, err = text(d)
			q.Node.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: version}
		case "user_agent_build_version", "userAgentBuildVersion":
			err = q.readBuild(d)
		default:
			err = d.SkipValue()
		}
		return err
	})
}

// message decodes a message from JSON.
func message(d *jsontext.Decoder, m proto.Message) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if len(value) > largestMessage {
		return fmt.Errorf("a part of the node has %d bytes: %d are allowed", len(value), largestMessage)
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
}

// readBuild reads the build version of an Envoy. readBuild ignores a malformed version.
func (q *request) readBuild(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	build := &corev3.BuildVersion{}
	if len(value) > largestMessage {
		return nil
	}
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, build) == nil {
		q.Node.UserAgentVersionType = &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{Version: build.GetVersion()}}
	}
	return nil
}

// readError reads error_detail. Any object is a NACK.
func (q *request) readError(d *jsontext.Decoder) error {
	q.Refused = d.PeekKind() != 'n'
	return members(d, func(name string) (err error) {
		if name == "message" {
			q.Reason, err = text(d)
			return err
		}
		return d.SkipValue()
	})
}

// members calls f with the name of each member of an object; f must read the member's value. null has no
// members.
func members(d *jsontext.Decoder, f func(name string) error) error {
	if open, err := enter(d, '{'); !open {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := f(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// enter reads the start of an object or a list. open is false for null and for an error.
func enter(d *jsontext.Decoder, kind jsontext.Kind) (open bool, err error) {
	switch t, err := d.ReadToken(); {
	case err != nil:
		return false, err
	case t.Kind() == 'n':
		return false, nil
	case t.Kind() != kind:
		return false, fmt.Errorf("%s must begin with %q, not %q", d.StackPointer(), kind, t.Kind())
	}
	return true, nil
}

// text reads a string; null reads as "".
func text(d *jsontext.Decoder) (string, error) {
	switch t, err := d.ReadToken(); {
	case err != nil:
		return "", err
	case t.Kind() == 'n':
		return "", nil
	case t.Kind() != '"':
		return "", fmt.Errorf("%s must be a string, not %q", d.StackPointer(), t.Kind())
	default:
		return t.String(), nil
	}
}

// finish completes a request from a client at a host: finish makes the names canonical, sorted and unique,
// and sets All, Client and Key.
func (q *request) finish(host string) {
	for i, name := range q.Names {
		q.Names[i] = xdstp.Canonical(name)
	}
	slices.Sort(q.Names)
	q.Names = slices.Compact(q.Names)
	_, star := slices.BinarySearch(q.Names, "*")
	q.All = star || len(q.Names) == 0 && cache.HoldsAll(q.Type)
	question := [][]byte{[]byte(host), []byte(q.Node.Id)}
	q.Client = xds.Version(question)
	question = append(question, []byte(q.Type.API))
	for _, name := range q.Names {
		question = append(question, []byte(name))
	}
	q.Key = xds.Version(question)
}

// patience returns how long a request may wait for a change. Envoy sends its own timeout; patience keeps a
// tenth of it for the network.
func (q *request) patience(h http.Header, most time.Duration) time.Duration {
	ms, err := strconv.ParseUint(h.Get("X-Envoy-Expected-Rq-Timeout-Ms"), 10, 32)
	if err != nil || ms == 0 { // no timeout, or an infinite one
		return most
	}
	return min(time.Duration(ms)*time.Millisecond*9/10, most)
}
