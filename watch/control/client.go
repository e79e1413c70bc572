package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"xdspub/xds/clients"
)

// maxAnswer is the largest answer in bytes. The list of 10,000 clients is smaller.
const maxAnswer = 256 << 20

// listPatience is how long a watch may take to list its clients: 10,000 clients take seconds.
const listPatience = 30 * time.Second

// Ask returns the state of the watch that publishes into the directory out. The error wraps ErrNoWatch if no
// watch runs: an *EndedError if the last watch ended by itself, ErrDied if the last watch was killed. The error
// wraps ErrSilent if the watch does not answer within 5 s.
func Ask(ctx context.Context, out string) (Watch, error) {
	var w Watch
	err := exchangeWithin(ctx, patience, out, request{http.MethodGet, watchPath, nil}, &w)
	return w, err
}

// Clients returns the clients of the watch that publishes into the directory out; empty if the watch serves no
// clients. The errors are the errors of Ask, but the watch has 30 s to answer. Call Ask first to find out
// quickly whether the watch answers.
func Clients(ctx context.Context, out string) ([]clients.Client, error) {
	list := []clients.Client{}
	err := exchangeWithin(ctx, listPatience, out, request{http.MethodGet, clientsPath, nil}, &list)
	return list, err
}

// Events returns the last events of the watch that publishes into the directory out, as lines of its log in JSON. The
// errors are the errors of Ask.
func Events(ctx context.Context, out string) ([]json.RawMessage, error) {
	list := []json.RawMessage{}
	err := exchangeWithin(ctx, patience, out, request{http.MethodGet, eventsPath, nil}, &list)
	return list, err
}

// Retry asks the watch that publishes into the directory out to publish held snapshots once more. Retry waits
// for the Result or the end of ctx. Call Ask first to find out quickly whether the watch answers. The error
// is a *ConflictError if the watch doesn't match r.
func Retry(ctx context.Context, out string, r RetryHeld) (Result, error) {
	return result(ctx, out, retryPath, r)
}

// AskPause asks the watch to publish nothing until a resume, as Retry asks. The error is a *ConflictError if the watch
// does not pause.
func AskPause(ctx context.Context, out string, p Pause) (Result, error) {
	return result(ctx, out, pausePath, p)
}

// AskResume asks the watch to end the pause and to publish, as Retry asks.
func AskResume(ctx context.Context, out string, r Resume) (Result, error) {
	return result(ctx, out, resumePath, r)
}

// AskRollback asks the watch to publish a snapshot of the history, as Retry asks. The error is a *ConflictError if
// there is no such snapshot.
func AskRollback(ctx context.Context, out string, r Rollback) (Result, error) {
	return result(ctx, out, rollbackPath, r)
}

// AskApprove asks the watch to publish a change that the guards have refused, as Retry asks. The error is a
// *ConflictError if no such change waits.
func AskApprove(ctx context.Context, out string, a Approve) (Result, error) {
	return result(ctx, out, approvePath, a)
}

// AskConfirm asks the watch to keep the snapshot that awaits confirmation, as Retry asks. The error is a *ConflictError
// if no such snapshot awaits confirmation.
func AskConfirm(ctx context.Context, out string, c Confirm) (Result, error) {
	return result(ctx, out, confirmPath, c)
}

// AskCancel asks the watch to undo the snapshot that awaits confirmation. The errors are those of AskConfirm.
func AskCancel(ctx context.Context, out string, c Cancel) (Result, error) {
	return result(ctx, out, cancelPath, c)
}

// AskExtend asks the watch to wait longer for a confirmation. The errors are those of AskConfirm.
func AskExtend(ctx context.Context, out string, e Extend) (Result, error) {
	return result(ctx, out, extendPath, e)
}

// result sends a request, and waits for its Result.
func result(ctx context.Context, out, path string, body any) (Result, error) {
	var r Result
	err := exchange(ctx, out, request{http.MethodPost, path, body}, &r)
	return r, err
}

// request is an HTTP request to a watch.
type request struct {
	method, path string
	body         any // nil for no body
}

// exchangeWithin is exchange with a timeout.
func exchangeWithin(ctx context.Context, most time.Duration, out string, r request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := exchange(ctx, out, r, into)
	if errors.Is(err, ErrSilent) {
		err = fmt.Errorf("%w within %v", err, most)
	}
	return err
}

// mostCuts is the number of times that a request is sent again after the watch closed the connection without
// an answer. A busy watch closes the connections of slow clients.
const mostCuts = 5

// exchange sends a request and reads the whole answer. Errors name the socket.
func exchange(ctx context.Context, out string, r request, into any) error {
	err := r.send(ctx, Path(out), into)
	for cuts := 0; cuts < mostCuts && isCut(err) && ctx.Err() == nil; cuts++ {
		again := r.send(ctx, Path(out), into)
		if isNone(again) || errors.Is(again, syscall.ECONNREFUSED) {
			break // the watch has ended
		}
		err = again
	}
	switch _, conflict := errors.AsType[*ConflictError](err); {
	case err == nil || conflict:
		return err
	case isNone(err):
		err = noWatch(out)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = ErrDied
	case errors.Is(err, context.DeadlineExceeded):
		err = ErrSilent
	case isCut(err):
		err = errors.New("the watch ended before it answered")
	}
	return fmt.Errorf("control socket %s: %w", Path(out), err)
}

// noWatch returns the error of Ask for a directory without a socket.
func noWatch(out string) error {
	at, is, err := endOf(out)
	switch {
	case err != nil:
		return err
	case is:
		return &EndedError{at}
	}
	return ErrNoWatch
}

// isNone reports whether an error means that the socket doesn't exist.
func isNone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isCut reports whether an error means that the watch has closed the connection.
func isCut(err error) bool {
	for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, cut) {
			return true
		}
	}
	// The library has no error value for a connection that closed before the first write.
	return err != nil && err.Error() == "http: server closed idle connection"
}

func (r request) send(ctx context.Context, socket string, into any) error {
	var data []byte
	if r.body != nil {
		var err error
		if data, err = json.Marshal(r.body); err != nil {
			return err
		}
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, "http://xdspub"+r.path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(sent)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err // the URL of a socket says nothing
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(answer) > maxAnswer:
		return fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	case response.StatusCode == http.StatusConflict:
		return &ConflictError{strings.TrimSpace(string(answer))}
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(answer)))
	}
	return json.Unmarshal(answer, into)
}

func dial(ctx context.Context, socket string) (net.Conn, error) {
	name, done, err := address(socket)
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if wrapped, ok := errors.AsType[*net.OpError](err); ok {
		return nil, wrapped.Err // without the name, which address may have shortened
	}
	return conn, err
}
