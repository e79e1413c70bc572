package hook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/safefile"
)

const (
	// maxSecret and maxCA are the largest sizes of the files of a webhook.
	maxSecret = 4 << 10
	maxCA     = 4 << 20
	// maxResponse is the number of bytes of a response that send reads. A connection with unread bytes is closed.
	maxResponse = 64 << 10
	// maxReason is the largest size of the reason of a failure.
	maxReason = 300
)

// client posts events to a Webhook.
type client struct {
	Webhook
	times      Times
	secret, ca string // files; empty for none
	agent      string
	host       string // the name of this machine

	http *http.Client // nil before the first request
	pem  []byte       // the content of ca that http accepts
}

func (c *client) failed(err error, lost int) event.Event {
	return event.WebhookFailed{URL: c.String(), Error: err, Lost: lost}
}

// send posts an event.
func (c *client) send(ctx context.Context, i item) error {
	body, err := c.format(i.json, c.host)
	if err != nil {
		return err
	}
	headers := map[string]string{
		"Content-Type": "application/json", "X-Xdspub-Event": i.name, "X-Xdspub-Host": c.host, "Idempotency-Key": i.id,
	}
	if c.secret != "" {
		if headers["X-Xdspub-Signature-256"], err = sign(c.secret, body); err != nil {
			return &retryError{err: err}
		}
	}
	response, _, err := c.do(ctx, http.MethodPost, body, headers, maxResponse)
	if response == nil {
		return &retryError{err: err}
	}
	return judge(response) // also if reading the body has failed
}

// do sends a request, and returns the response with its first bytes, at most most. do takes at most Times.Timeout. If
// reading the body fails, do returns the response and an error. The error has no secrets.
func (c *client) do(ctx context.Context, method string, body []byte, headers map[string]string, most int64) (*http.Response, []byte, error) {
	if err := c.useCA(); err != nil {
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.times.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, method, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, errors.New(c.hide(err))
	}
	request.Header.Set("User-Agent", c.agent)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	var answer []byte
	if err == nil {
		defer response.Body.Close()
		answer, err = io.ReadAll(io.LimitReader(response.Body, most))
	}
	switch {
	case err == nil:
		return response, answer, nil
	case limited.Err() != nil && ctx.Err() == nil:
		return response, nil, fmt.Errorf("no answer within %v", c.times.Timeout)
	}
	return response, nil, errors.New(c.hide(err))
}

// judge returns the error of a response; nil if the server has accepted the event.
func judge(r *http.Response) error {
	err := fmt.Errorf("the server answers %s", strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode))))
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return fmt.Errorf("%w, and xdspub follows no redirect: use the URL that the server redirects to", err)
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		return &retryError{err, retryAfter(r.Header.Get("Retry-After"), time.Now())}
	}
	return err
}

// retryAfter returns the pause of a header Retry-After; 0 if the header has none.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// sign returns the signature of a body with the key in a file. A line end after the key does not count.
func sign(file string, body []byte) (string, error) {
	key, err := safefile.Read(file, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the secret can't be read: %w", err)
	}
	key = bytes.TrimRight(key, "\r\n")
	if len(key) == 0 {
		return "", fmt.Errorf("the secret can't be read: %s is empty", file)
	}
	m := hmac.New(sha256.New, key)
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil)), nil
}

// useCA makes the HTTP client, and makes it again if the file of CA certificates has changed. The client uses no
// proxy and follows no redirect.
func (c *client) useCA() error {
	var pem []byte
	var roots *x509.CertPool // nil for those of the system
	if c.ca != "" {
		var err error
		if pem, err = safefile.Read(c.ca, maxCA); err != nil {
			return fmt.Errorf("the CA certificates can't be read: %w", err)
		}
	}
	if c.http != nil && bytes.Equal(pem, c.pem) {
		return nil
	}
	if c.ca != "" {
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("the CA certificates can't be read: %s has no certificate in PEM", c.ca)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.pem = pem
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxIdleConns:    1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponse, DisableCompression: true,
		},
	}
	return nil
}

// hide returns the text of an error without secrets. The path, the query, the user and the password of the URL may be
// secrets, and a server may repeat them. So hide drops the words of the server, and each part of the URL.
func (c *client) hide(err error) string {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	text := err.Error()
	if !isOurs(err) && !strings.HasPrefix(text, tooManyHeaders) {
		text = "no valid answer by HTTP or TLS"
	}
	for _, secret := range c.parts() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return diag.Hide(diag.ClipLine(text, maxReason))
}

// tooManyHeaders begins the error about an answer with more than maxResponse bytes of headers.
const tooManyHeaders = "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded "

// isOurs reports whether the text of an error is of the system or of the libraries. The other errors of a request quote
// the answer of the server.
func isOurs(err error) bool {
	network, isNetwork := errors.AsType[net.Error](err)
	_, isVerification := errors.AsType[*tls.CertificateVerificationError](err)
	_, isAlert := errors.AsType[tls.AlertError](err)
	_, isRecord := errors.AsType[tls.RecordHeaderError](err)
	return isNetwork && network != nil || isVerification || isAlert || isRecord || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, http.ErrSchemeMismatch) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// leastPart is the length of the shortest part of a URL that is hidden. A shorter part is no secret, and would hide
// parts of words.
const leastPart = 4

// parts returns the parts of the URL that may be secrets, longest first: as they are, and as the request sends them.
func (c *client) parts() (list []string) {
	password, _ := c.url.User.Password()
	list = append(list, c.url.RequestURI(), c.url.EscapedPath(), c.url.Path, c.url.RawQuery, c.url.Fragment, c.url.User.String(),
		c.url.User.Username(), password, base64.StdEncoding.EncodeToString([]byte(c.url.User.Username()+":"+password)))
	list = append(list, strings.FieldsFunc(c.url.EscapedPath()+"/"+c.url.Path, func(r rune) bool { return r == '/' })...)
	for name, values := range c.url.Query() {
		list = append(append(list, name, url.QueryEscape(name)), values...)
		for _, value := range values {
			list = append(list, url.QueryEscape(value))
		}
	}
	list = slices.DeleteFunc(list, func(part string) bool { return len(part) < leastPart })
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return list
}
