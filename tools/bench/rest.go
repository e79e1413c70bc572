package main

import (
	"bufio"
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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xdspub/tools/sample"
)

const (
	restClusters = 1_000
	restRequests = 16 // at one time
	restTime     = 5 * time.Second
	restRounds   = 3
	restBuffer   = 64 << 10 // bytes of one read of a response
)

// measureREST prints how many responses with all clusters xdspub serve and sovereign send in a second. It measures
// one server at a time.
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
	response, err := firstResponse(ours)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &serve.log)
	}
	sovereign, err := beginSovereign(filepath.Join(dir, "rest"), theirs, response)
	if err != nil {
		return err
	}
	defer sovereign.end()
	same, err := firstResponse(theirs)
	if err != nil || !bytes.Contains(same, fmt.Appendf(nil, "service-%05d", restClusters-1)) {
		return fmt.Errorf("sovereign says otherwise: %w\n%s", err, &sovereign.log)
	}
	var best [2]float64
	for range restRounds {
		for i, of := range []struct {
			address string
			size    int
		}{{theirs, len(same)}, {ours, len(response)}} {
			rate, err := responsesPerSecond(of.address, of.size)
			if err != nil {
				return err
			}
			best[i] = max(best[i], rate)
		}
	}
	fmt.Printf("Responses with %d clusters (%d kB) by REST, %d requests at one time, best of %d "+
		"rounds of %v\n\n", restClusters, len(response)/1000, restRequests, restRounds, restTime)
	fmt.Printf("| | responses a second | ratio |\n|---|---|---|\n| sovereign 0.32.12 | %.1f | 1 |\n| `xdspub serve` | %.0f "+
		"| %.0f |\n\n", best[0], best[1], best[1]/best[0])
	return nil
}

// beginSovereign starts sovereign with a template that returns the ready resources of a response. Sovereign has no
// faster kind of template.
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
		put(filepath.Join(dir, "clusters.py"), fmt.Sprintf("import json\nwith open(%q) as f:\n    resources = json.load(f)\n\ndef "+
			"call(**_):\n    yield from resources\n", filepath.Join(dir, "resources.json"))),
		put(filepath.Join(dir, "sovereign.yaml"), fmt.Sprintf("templates: {default: [{type: clusters, spec: {protocol: python, "+
			"path: %s}}]}\nlogging: {access_logs: {enabled: false}}\n", filepath.Join(dir, "clusters.py"))),
	)
	if err != nil {
		return nil, err
	}
	p := &program{Cmd: exec.Command(string(bytes.TrimSpace(path)))}
	p.Dir, p.Stderr = dir, &p.log
	p.Env = append(os.Environ(), "SOVEREIGN_CONFIG=file://"+filepath.Join(dir, "sovereign.yaml"), "SOVEREIGN_HOST="+host,
		"SOVEREIGN_PORT="+port, "SOVEREIGN_WORKERS=2")
	return p, p.Start()
}

// freePort returns a port that was unused a moment ago, or "0" if no port is unused.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// firstResponse asks a server for all clusters until it answers, for up to a minute.
func firstResponse(address string) (response []byte, err error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var a *asker
		if a, err = newAsker(address); err != nil {
			continue
		}
		var b bytes.Buffer
		err = a.ask(&b)
		a.conn.Close()
		if err == nil {
			return b.Bytes(), nil
		}
	}
	return nil, err
}

// asker asks a server for all clusters, again and again, on one connection. The asker shares its processors with
// the server, and takes half the processor time of an http.Client.
type asker struct {
	conn    net.Conn
	request *http.Request
	written []byte // the request on the wire
	in      *bufio.Reader
	buffer  []byte
}

func newAsker(address string) (*asker, error) {
	request, err := http.NewRequest(http.MethodPost, "http://"+address+"/v3/discovery:clusters",
		strings.NewReader(`{"node": {"id": "bench", "cluster": "bench"}, "type_url": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}`))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	var written bytes.Buffer
	if err := request.Write(&written); err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &asker{conn, request, written.Bytes(), bufio.NewReaderSize(conn, restBuffer), make([]byte, restBuffer)}, nil
}

// ask asks once, and writes the body of the response to to.
func (a *asker) ask(to io.Writer) error {
	if _, err := a.conn.Write(a.written); err != nil {
		return err
	}
	r, err := http.ReadResponse(a.in, a.request)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", a.request.URL, r.Status)
	}
	_, err = io.CopyBuffer(to, r.Body, a.buffer)
	return err
}

// counter counts bytes. Unlike io.Discard, counter lets io.CopyBuffer use the buffer of the caller.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// repeat asks a server for restTime, and returns the number of responses. A response without the given size is an
// error.
func repeat(address string, size int) (responses int, err error) {
	a, err := newAsker(address)
	if err != nil {
		return 0, err
	}
	defer a.conn.Close()
	for began := time.Now(); time.Since(began) < restTime; responses++ {
		var read counter
		if err := a.ask(&read); err != nil {
			return 0, err
		}
		if int(read) != size {
			return 0, fmt.Errorf("%s: a response has %d bytes, not %d", a.request.URL, read, size)
		}
	}
	return responses, nil
}

// responsesPerSecond returns how many responses a server sends in a second to restRequests connections.
func responsesPerSecond(address string, size int) (float64, error) {
	var responses atomic.Int64
	var failed atomic.Value
	var askers sync.WaitGroup
	began := time.Now()
	for range restRequests {
		askers.Go(func() {
			n, err := repeat(address, size)
			if err != nil {
				failed.Store(err)
			}
			responses.Add(int64(n))
		})
	}
	askers.Wait()
	if err, ok := failed.Load().(error); ok {
		return 0, err
	}
	return float64(responses.Load()) / time.Since(began).Seconds(), nil
}
