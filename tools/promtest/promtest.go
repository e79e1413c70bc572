// Package promtest runs the real Prometheus and promtool for tests.
//
//	p := promtest.Start(t, "scrape_configs: [{job_name: xdspub, static_configs: [{targets: [\"127.0.0.1:9900\"]}]}]")
//	values := p.Query(t, "up == 1")
//
// If Prometheus is not installed, tests skip; with CI=true, tests fail.
package promtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

const (
	// starting is the longest start of Prometheus on a busy machine.
	starting = 2 * time.Minute
	// ending is how long Prometheus may take from SIGTERM to its end.
	ending = time.Minute
)

// binary returns the path of Prometheus: XDSPUB_PROMETHEUS, or the Prometheus that scripts/prometheus has downloaded.
func binary(t testing.TB) string {
	t.Helper()
	return envoytest.Fetched(t, "NOT TESTED: Prometheus is missing. Download it: scripts/prometheus", "prometheus")
}

// Promtool runs promtool with an input, and fails the test if promtool finds a fault. It returns the output.
func Promtool(t testing.TB, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(filepath.Dir(binary(t)), "promtool"), args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Prometheus is a running Prometheus.
type Prometheus struct{ url string }

// At returns the Prometheus at a URL. At does not wait for its start.
func At(url string) *Prometheus { return &Prometheus{url} }

// Until waits until Prometheus answers, and an expression has a result. A failure names what.
func (p *Prometheus) Until(t testing.TB, what, expression string) {
	t.Helper()
	envoytest.Eventually(t, starting, "Prometheus "+what, func() (bool, string) {
		if _, err := p.get("/-/ready", nil); err != nil {
			return false, err.Error()
		}
		return len(p.Query(t, expression)) > 0, "no result of " + expression
	})
}

// Start starts Prometheus with the text of a configuration, and waits until Prometheus is ready. Paths in the
// configuration are absolute. Prometheus ends with the test.
func Start(t testing.TB, config string) *Prometheus {
	t.Helper()
	program, dir := binary(t), t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", envoytest.FreePort(t))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(ending):
			t.Errorf("Prometheus has not ended %v after SIGTERM", ending)
			_ = cmd.Process.Kill()
			<-ended
		}
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the log of Prometheus:\n%s", text)
		}
	})
	p := &Prometheus{"http://" + address}
	envoytest.Eventually(t, starting, "Prometheus is ready", func() (bool, string) {
		select {
		case <-ended:
			t.Fatalf("Prometheus has ended: %v", cmd.ProcessState)
		default:
		}
		_, err := p.get("/-/ready", nil)
		return err == nil, fmt.Sprint(err)
	})
	return p
}

// get asks for a path, and returns the body of the answer.
func (p *Prometheus) get(path string, query url.Values) ([]byte, error) {
	response, err := http.Get(p.url + path + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// api asks the HTTP API, and decodes the data of the answer.
func (p *Prometheus) api(t testing.TB, path string, query url.Values, into any) {
	t.Helper()
	body, err := p.get(path, query)
	if err == nil {
		err = json.Unmarshal(body, &struct{ Data any }{into})
	}
	if err != nil {
		t.Fatalf("%s %v: %v", path, query, err)
	}
}

// Sample is an element of the result of a query.
type Sample struct {
	Labels map[string]string
	Value  string
}

// Query returns the result of an expression now, whose type is a vector.
func (p *Prometheus) Query(t testing.TB, expression string) (list []Sample) {
	t.Helper()
	var answer struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	p.api(t, "/api/v1/query", url.Values{"query": {expression}}, &answer)
	for _, r := range answer.Result {
		list = append(list, Sample{r.Metric, fmt.Sprint(r.Value[1])})
	}
	return list
}

// Alert is an alert. Its State is firing or pending.
type Alert struct {
	Labels, Annotations map[string]string
	State               string
}

// Alerts returns the alerts.
func (p *Prometheus) Alerts(t testing.TB) []Alert {
	t.Helper()
	var answer struct{ Alerts []Alert }
	p.api(t, "/api/v1/alerts", nil, &answer)
	return answer.Alerts
}
