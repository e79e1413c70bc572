package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/internal/sample"
)

const (
	restClusters = 1_000
	restRequests = 16 // at one time
	restTime     = 5 * time.Second
	restRounds   = 3
)

// measureREST prints how many responses with all clusters xdspub serve and sovereign send in a
// second, one after the other. Both have two processors, which they share with the requests.
func measureREST(dir, xdspub string) error {
	if err := put(filepath.Join(dir, "rest/src/clusters.yaml"), sample.Clusters(restClusters)); err != nil {
		return err
	}
	ours, theirs := "127.0.0.1:"+freePort(), "127.0.0.1:"+freePort()
	serve, err := begin(xdspub, "serve", "--http", ours, filepath.Join(dir, "rest/src"))
	if err != nil {
		return err
	}
	defer serve.end()
	response, err := first(ours)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &serve.log)
	}
	sovereign, err := beginSovereign(filepath.Join(dir, "rest"), theirs, response)
	if err != nil {
		return err
	}
	defer sovereign.end()
	if response, err := first(theirs); err != nil || !bytes.Contains(response, fmt.Appendf(nil, "service-%05d", restClusters-1)) {
		return fmt.Errorf("sovereign says otherwise: %w\n%s", err, &sovereign.log)
	}
	var best [2]float64
	for range restRounds {
		for i, address := range []string{theirs, ours} {
			rate, err := responsesPerSecond(address)
			if err != nil {
				return err
			}
			best[i] = max(best[i], rate)
		}
	}
	fmt.Printf("Responses with %d clusters (%d kB) by REST, %d requests at one time, best of %d rounds of %v\n\n", restClusters, len(response)/1000, restRequests, restRounds, restTime)
	fmt.Printf("| | responses a second | ratio |\n|---|---|---|\n| sovereign 0.32.12 | %.1f | 1 |\n| `xdspub serve` | %.0f | %.0f |\n\n", best[0], best[1], best[1]/best[0])
	return nil
}

// beginSovereign starts sovereign with a template that has the resources of a response at hand: it
// has no faster one.
func beginSovereign(dir, address string, response []byte) (*program, error) {
	path, err := exec.Command("scripts/sovereign").Output()
	if err != nil {
		return nil, fmt.Errorf("scripts/sovereign: %w", err)
	}
	var of struct {
		Resources json.RawMessage `json:"resources"`
	}
	host, port, splitErr := net.SplitHostPort(address)
	err = errors.Join(
		splitErr,
		json.Unmarshal(response, &of),
		put(filepath.Join(dir, "resources.json"), string(of.Resources)),
		put(filepath.Join(dir, "clusters.py"), fmt.Sprintf("import json\nwith open(%q) as f:\n    resources = json.load(f)\n\ndef call(**_):\n    yield from resources\n", filepath.Join(dir, "resources.json"))),
		put(filepath.Join(dir, "sovereign.yaml"), fmt.Sprintf("templates: {default: [{type: clusters, spec: {protocol: python, path: %s}}]}\nlogging: {access_logs: {enabled: false}}\n", filepath.Join(dir, "clusters.py"))),
	)
	if err != nil {
		return nil, err
	}
	p := &program{Cmd: exec.Command(string(bytes.TrimSpace(path)))}
	p.Dir, p.Stderr = dir, &p.log
	p.Env = append(os.Environ(), "SOVEREIGN_CONFIG=file://"+filepath.Join(dir, "sovereign.yaml"), "SOVEREIGN_HOST="+host, "SOVEREIGN_PORT="+port, "SOVEREIGN_WORKERS=2")
	return p, p.Start()
}

// freePort returns a port that nobody uses.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// first asks a server until it answers.
func first(address string) (response []byte, err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var b bytes.Buffer
		if err = clustersOf(address, &b); err == nil {
			return b.Bytes(), nil
		}
	}
	return nil, err
}

// clustersOf asks a server for all clusters.
func clustersOf(address string, to io.Writer) error {
	r, err := http.Post("http://"+address+"/v3/discovery:clusters", "application/json", bytes.NewReader([]byte(`{"node": {"id": "bench", "cluster": "bench"}, "type_url": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}`)))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, r.Status)
	}
	_, err = io.Copy(to, r.Body)
	return err
}

// responsesPerSecond asks a server for some time.
func responsesPerSecond(address string) (float64, error) {
	var responses atomic.Int64
	var failed atomic.Value
	var asking sync.WaitGroup
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = restRequests
	began := time.Now()
	for range restRequests {
		asking.Go(func() {
			for time.Since(began) < restTime {
				if err := clustersOf(address, io.Discard); err != nil {
					failed.Store(err)
					return
				}
				responses.Add(1)
			}
		})
	}
	asking.Wait()
	if err, ok := failed.Load().(error); ok {
		return 0, err
	}
	return float64(responses.Load()) / time.Since(began).Seconds(), nil
}
