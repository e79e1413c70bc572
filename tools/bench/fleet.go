package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"xdspub/source/load"
	"xdspub/store"
	"xdspub/tools/sample"
)

const (
	// followers is the first argument of this program as the machines of a fleet.
	followers = "followers"
	// machinesOfProcess is the number of machines that a process runs.
	machinesOfProcess = 250
	// fleetEdits is the number of edits of each kind.
	fleetEdits = 5
	// fleetIdle is how long an idle etcd is measured.
	fleetIdle = 30 * time.Second
	// fleetSettles is the pause in which the machines acknowledge a change.
	fleetSettles = 4 * time.Second
)

// fleetSizes are the numbers of machines.
var fleetSizes = []int{10, 100, 1_000}

// fleetChanges are the edited files, each with the number of its first cluster and the number of its clusters. A third
// file has all other clusters.
var fleetChanges = []struct {
	file     string
	from, of int
}{{"one.yaml", 0, 1}, {"hundred.yaml", 1, 100}}

// measureFleet prints what a change of n clusters costs a writer, an etcd and the machines that follow, until all
// machines have the change. All processes run on this machine.
func measureFleet(dir, xdspub string, n int) error {
	fmt.Printf("A fleet of %d clusters, of which some are edited %d times: until the machines have the edit, and for each edit\n\n"+
		"| machines | edited | p50 | p99 | CPU of the writer | CPU of etcd | CPU of all machines | stored | read by a machine | of its own |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n", n, fleetEdits)
	var rest []string
	for _, machines := range fleetSizes {
		line, err := measureMachines(filepath.Join(dir, fmt.Sprint("fleet-", machines)), xdspub, n, machines)
		if err != nil {
			return fmt.Errorf("%d machines: %w", machines, err)
		}
		rest = append(rest, line)
	}
	fmt.Printf("\n| machines | memory of etcd | CPU of an idle etcd | bytes to an idle machine | requests and watches of an idle machine |\n|---|---|---|---|---|\n%s\n",
		strings.Join(rest, ""))
	return nil
}

// fleet is an etcd, a writer, and machines.
type fleet struct {
	source       string
	etcd, writer *program
	endpoint     string
	machines     []*program
	arrivals     chan time.Time // gets the time at which a machine has a change
	all          []*program
}

// measureMachines prints the costs of edits for a number of machines. measureMachines returns a
// row about the idle fleet.
func measureMachines(dir, xdspub string, clusters, machines int) (row string, err error) {
	f := &fleet{source: filepath.Join(dir, "src"), arrivals: make(chan time.Time, machines)}
	defer func() {
		for _, p := range slices.Backward(f.all) {
			p.end()
		}
	}()
	if err := f.begin(dir, xdspub, clusters); err != nil {
		return "", err
	}
	alone := memory(f.etcd.Process.Pid, "VmRSS")
	if err := f.follow(machines); err != nil {
		return "", err
	}
	for i, change := range fleetChanges {
		if err := f.measureEdits(xdspub, change.file, i+1, change.of, machines); err != nil {
			return "", err
		}
	}
	before, used := f.counts(), f.etcd.cpu()
	time.Sleep(fleetIdle)
	after, used := f.counts(), f.etcd.cpu()-used
	each := func(metric string) float64 {
		return (after[metric] - before[metric]) / float64(machines) / fleetIdle.Minutes()
	}
	return fmt.Sprintf("| %d | %.0f MiB, %.0f MiB without machines | %.2f %% of a core | %.0f a minute | %.1f a minute |\n", machines,
		memory(f.etcd.Process.Pid, "VmRSS"), alone, 100*used.Seconds()/fleetIdle.Seconds(), each(sentBytes), each(requests)), nil
}

// run starts a program. The end of the measurement ends the program.
func (f *fleet) run(name string, args ...string) (*program, error) {
	p, err := begin(name, args...)
	if err == nil {
		f.all = append(f.all, p)
	}
	return p, err
}

// begin starts etcd and the writer.
func (f *fleet) begin(dir, xdspub string, clusters int) (err error) {
	path, err := exec.Command("scripts/etcd").Output()
	if err != nil {
		return fmt.Errorf("scripts/etcd: %w", err)
	}
	last := fleetChanges[len(fleetChanges)-1]
	from := last.from + last.of
	texts := map[string]string{"others.yaml": sample.Part(from, clusters-from)}
	for _, c := range fleetChanges {
		texts[c.file] = sample.Part(c.from, c.of)
	}
	for name, text := range texts {
		if err := put(filepath.Join(f.source, name), text); err != nil {
			return err
		}
	}
	f.endpoint = "127.0.0.1:" + freePort()
	url := "http://" + f.endpoint
	f.etcd, err = f.run(strings.TrimSpace(string(path)), "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error")
	if err != nil {
		return err
	}
	out := filepath.Join(dir, "out")
	f.writer, err = f.run(xdspub, "watch", "--out", out, "--format", "pb", "--step-gap", "0s", "--rescan", "1h", "--store", f.address(), f.source)
	if err == nil {
		_, err = changed(filepath.Join(out, "cds/cds.pb"), nil)
	}
	return err
}

func (f *fleet) address() string { return store.Scheme + f.endpoint + "/bench" }

// follow starts machines, and waits until each machine has all clusters.
func (f *fleet) follow(machines int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for first := 0; first < machines; first += machinesOfProcess {
		p := &program{Cmd: exec.Command(self, followers, f.address(), fmt.Sprint(first), fmt.Sprint(min(machinesOfProcess, machines-first)))}
		p.Stderr = io.Writer(&p.log)
		lines, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			return err
		}
		f.all, f.machines = append(f.all, p), append(f.machines, p)
		go func() {
			for in := bufio.NewScanner(lines); in.Scan(); {
				nanoseconds, _ := strconv.ParseInt(in.Text(), 10, 64)
				f.arrivals <- time.Unix(0, nanoseconds)
			}
		}()
	}
	_, err = f.arrive(machines)
	time.Sleep(fleetSettles)
	return err
}

// arrive waits until all machines have a change, and returns the times.
func (f *fleet) arrive(machines int) (at []time.Time, err error) {
	late := time.After(10 * time.Minute)
	for range machines {
		select {
		case t := <-f.arrivals:
			at = append(at, t)
		case <-late:
			return nil, fmt.Errorf("%d of %d machines have a change", len(at), machines)
		}
	}
	return at, nil
}

// measureEdits edits the clusters of a file, and prints the cost of an edit.
func (f *fleet) measureEdits(xdspub, file string, round, clusters, machines int) error {
	path := filepath.Join(f.source, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	response, err := exec.Command(xdspub, "convert", "--to", "pb", path).Output()
	if err != nil {
		return err
	}
	stored, err := f.stored()
	if err != nil {
		return err
	}
	var took []time.Duration
	before, writer, etcd, all := f.counts(), f.writer.cpu(), f.etcd.cpu(), f.machinesCPU()
	for i := range fleetEdits {
		begun := time.Now()
		if err := put(path, strings.ReplaceAll(string(text), "connect_timeout: 1s", fmt.Sprintf("connect_timeout: %ds", 100*round+i))); err != nil {
			return err
		}
		at, err := f.arrive(machines)
		if err != nil {
			return err
		}
		for _, t := range at {
			took = append(took, t.Sub(begun))
		}
		time.Sleep(fleetSettles)
	}
	read := (f.counts()[sentBytes] - before[sentBytes]) / fleetEdits / float64(machines)
	writer, etcd, all = (f.writer.cpu()-writer)/fleetEdits, (f.etcd.cpu()-etcd)/fleetEdits, (f.machinesCPU()-all)/fleetEdits
	now, err := f.stored()
	if err != nil {
		return err
	}
	slices.Sort(took)
	fmt.Printf("| %d | %d clusters, %d bytes | %v | %v | %v | %v | %v | %d bytes | %.0f bytes | %.2f |\n", machines, clusters, len(response),
		took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), writer, etcd, all,
		(now-stored)/fleetEdits, read, read/float64(len(response)))
	return nil
}

// machinesCPU returns the processor time of all machines.
func (f *fleet) machinesCPU() (sum time.Duration) {
	for _, p := range f.machines {
		sum += p.cpu()
	}
	return sum
}

// stored returns the bytes of the keys that changes add, with all versions of the head.
func (f *fleet) stored() (bytes int64, err error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{f.endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := c.Get(ctx, "/bench/", clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	for _, kv := range r.Kvs {
		size := int64(len(kv.Key) + len(kv.Value))
		switch {
		case strings.HasPrefix(string(kv.Key), "/bench/heads/"):
			bytes += size * kv.Version
		case !strings.HasPrefix(string(kv.Key), "/bench/machines/"):
			bytes += size
		}
	}
	return bytes, nil
}

const (
	sentBytes = "etcd_network_client_grpc_sent_bytes_total"
	requests  = "grpc_server_msg_received_total"
)

// counts returns metrics of etcd, each as a sum over its labels.
func (f *fleet) counts() map[string]float64 {
	sums := make(map[string]float64)
	r, err := http.Get("http://" + f.endpoint + "/metrics")
	if err != nil {
		return sums
	}
	defer r.Body.Close()
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		n, _ := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
		sums[name] += n
	}
	return sums
}

// runFollowers runs machines that follow a store. When a machine has a change, runFollowers prints the time in
// nanoseconds since 1970. The arguments are the address of the store, the number of the first machine, and the number
// of machines.
func runFollowers(args []string) error {
	address, err := store.ParseAddress(args[0])
	first, notFirst := strconv.Atoi(args[1])
	machines, notMachines := strconv.Atoi(args[2])
	if err := errors.Join(err, notFirst, notMachines); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var running sync.WaitGroup
	for i := range machines {
		f := store.NewFollower(store.FollowerOptions{Options: store.Options{Address: address}, Machine: fmt.Sprintf("machine-%04d", first+i)})
		running.Go(func() { f.Run(ctx) })
		running.Go(func() {
			var has uint64
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-f.Changed():
				}
				if c, err := f.Read(ctx); err == nil && c.N > has {
					has = c.N
					fmt.Println(time.Now().UnixNano())
					f.Judged(load.Judgement{N: c.N, Accepted: true})
				}
			}
		})
	}
	running.Wait()
	return nil
}
