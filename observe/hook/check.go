package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"xdspub/diag"
)

// maxAnswer bounds the answer of a Prometheus in bytes.
const maxAnswer = 1 << 20

// Check is a program or a query of a Prometheus that judges a fleet: --check. Its methods are safe for concurrent use.
type Check struct {
	program *program // nil for a query
	query   Webhook
	ca      string
	agent   string
	times   Times
}

// ParseCheck parses CMD, as ParseCommand does, or the URL of an instant query of a Prometheus. The options have the
// bounds of time, the CA file and the version. The error says what to write instead. It does not quote the URL, which
// may hold a secret.
func ParseCheck(text string, o Options) (*Check, error) {
	c := &Check{ca: o.CA, agent: "xdspub/" + o.Version, times: o.Times.withDefaults()}
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		words, err := split(text)
		if err != nil {
			return nil, err
		}
		command, err := commandOf(words, "CMD")
		c.program = &program{Command: command, times: c.times}
		return c, err
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Fragment != "" {
		return nil, errors.New("write the URL of a query as http://HOST/api/v1/query?query=EXPRESSION, and %23 for a #")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil || values.Get("query") == "" || !strings.HasSuffix(u.Path, "/api/v1/query") {
		return nil, errors.New("write the URL of a query as http://HOST/api/v1/query?query=EXPRESSION, and %25 for a %, %26 for an &, %2B for a +")
	}
	u.RawQuery = values.Encode()
	c.query.url = u
	return c, nil
}

// String returns the program without its arguments, or the scheme and the host of the URL.
func (c *Check) String() string {
	if c.program != nil {
		return c.program.String()
	}
	return c.query.String()
}

// Run runs the check. If failed is true, the program has ended with another exit status than 0, or the query has a
// result. An error without failed means that the check can't tell: the program hangs, or the Prometheus has no valid
// answer. about is the standard input of the program.
func (c *Check) Run(ctx context.Context, about []byte) (failed bool, err error) {
	if c.program != nil {
		err := c.program.run(ctx, about, true)
		status, ended := errors.AsType[*exec.ExitError](err)
		return ended && status.Exited(), err
	}
	return c.ask(ctx)
}

// ask sends the query.
func (c *Check) ask(ctx context.Context) (failed bool, err error) {
	to := &client{Webhook: c.query, ca: c.ca, times: c.times, agent: c.agent}
	response, body, err := to.do(ctx, http.MethodGet, nil, nil, maxAnswer+1)
	if to.http != nil {
		to.http.CloseIdleConnections()
	}
	if err != nil {
		return false, err
	}
	return judgeAnswer(response, body)
}

// answer is the answer of a Prometheus to an instant query.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// judgeAnswer returns whether an answer has a result.
func judgeAnswer(r *http.Response, body []byte) (failed bool, err error) {
	var is answer
	switch wrong := json.Unmarshal(body, &is); {
	case len(body) > maxAnswer:
		return false, fmt.Errorf("the answer has more than %d bytes: let the query count its series", maxAnswer)
	case wrong == nil && is.Status == "error":
		return false, fmt.Errorf("the Prometheus refuses the query: %s", diag.Hide(diag.ClipLine(is.Error, maxReason)))
	case r.StatusCode != http.StatusOK && judge(r) != nil:
		return false, judge(r)
	case wrong != nil || is.Status != "success":
		return false, errors.New("the answer is not that of a Prometheus")
	}
	switch is.Data.Type {
	case "vector":
		return judgeVector(is.Data.Result)
	case "scalar":
		var sample [2]any
		if json.Unmarshal(is.Data.Result, &sample) != nil {
			break
		}
		text, _ := sample[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case value == 0:
			return false, nil
		case math.IsNaN(value):
			return false, errors.New("the result of the query is NaN")
		default:
			return true, fmt.Errorf("the result of the query is %s", text)
		}
	}
	return false, errors.New("the answer has neither a vector nor a scalar: write an expression that has a result while something is wrong, such as rate(errors_total[1m]) > 1")
}

// mostSeries is the number of series that the reason of a failed check names.
const mostSeries = 3

// judgeVector returns whether a vector has a series.
func judgeVector(result json.RawMessage) (failed bool, err error) {
	var list []struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	if json.Unmarshal(result, &list) != nil {
		return false, errors.New("the answer has an invalid vector")
	}
	if len(list) == 0 {
		return false, nil
	}
	var said []string
	for _, series := range list {
		var labels []string
		for name, value := range series.Metric {
			labels = append(labels, fmt.Sprintf("%s=%q", name, value))
		}
		slices.Sort(labels)
		said = append(said, fmt.Sprintf("{%s} %v", strings.Join(labels, ","), series.Value[1]))
	}
	return true, fmt.Errorf("the query has a result: %s", diag.Hide(diag.ClipLine(diag.Few(said, mostSeries), maxReason)))
}
