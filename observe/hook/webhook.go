package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	if err := c.useCA(); err != nil {
		return &retryError{err: err}
	}
	body, err := c.format(i.json, c.host)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.times.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New(c.hide(err))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set("X-Xdspub-Event", i.name)
	request.Header.Set("X-Xdspub-Host", c.host)
	request.Header.Set("Idempotency-Key", i.id)
	if c.secret != "" {
		signature, err := sign(c.secret, body)
		if err != nil {
			return &retryError{err: err}
		}
		request.Header.Set("X-Xdspub-Signature-256", signature)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("no response within %v", c.times.Timeout)
		}
		return &retryError{err: errors.New(c.hide(err))}
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxResponse) // an error ends the connection only
	return judge(response)
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

// hide returns the text of an error without the URL, whose path, query or password may be a secret.
func (c *client) hide(err error) string {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	text := err.Error()
	password, _ := c.url.User.Password()
	for _, secret := range []string{c.url.RequestURI(), c.url.EscapedPath(), c.url.Path, c.url.RawQuery, password} {
		if len(secret) > 1 {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return diag.ClipLine(text, maxReason)
}
