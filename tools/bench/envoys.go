package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"xdspub/tools/sample"
)

// A running Envoy holds an inotify instance for each path subscription, and a user may have 128 by default. So the
// trees of these measurements have the endpoints in the clusters, except the endpoints of one cluster.

// program is a process that a measurement runs.
type program struct {
	*exec.Cmd
	log bytes.Buffer
}

// begin starts a program, and keeps what it writes to stderr.
func begin(name string, args ...string) (*program, error) {
	p := &program{Cmd: exec.Command(name, args...)}
	p.Stderr = io.Writer(&p.log)
	return p, p.Start()
}

func (p *program) end() {
	_ = p.Process.Signal(syscall.SIGTERM)
	_ = p.Wait()
}

// cpu returns the processor time that the process has used.
func (p *program) cpu() time.Duration { return processorTime(p.Process.Pid) }

// comeToRest waits until the process has used no processor time for a second.
func (p *program) comeToRest() {
	for was := time.Duration(-1); was != p.cpu(); time.Sleep(time.Second) {
		was = p.cpu()
	}
}

// site is a source tree with its output directory and the Envoys that read the directory.
type site struct {
	dir, source, out string
	envoys           []*program
	admins           []string
}

// newSite writes a source tree of n clusters, and of one more cluster with an endpoint assignment.
func newSite(dir string, n int) (*site, error) {
	s := &site{dir: dir, source: filepath.Join(dir, "src"), out: filepath.Join(dir, "out")}
	for from := range n {
		if err := put(filepath.Join(s.source, "clusters", fmt.Sprintf("%06d.yaml", from)), sample.Part(from, 1)); err != nil {
			return nil, err
		}
	}
	t := sample.Topology{Clusters: n}
	err := put(filepath.Join(s.source, "eds.yaml"), t.Cluster(n, 0))
	if err == nil {
		err = put(filepath.Join(s.source, "endpoints.yaml"), t.Endpoints(n, 0))
	}
	return s, err
}

// put writes a file by a rename, and makes its folder.
func put(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// watch starts xdspub watch, and waits until it has published.
func (s *site) watch(xdspub string, args ...string) (*program, error) {
	w, err := begin(xdspub, append(append([]string{"watch", "--out", s.out, "--format", "pb", "--eds", "file", "--step-gap", "0s"}, args...), s.source)...)
	if err != nil {
		return nil, err
	}
	_, err = changed(filepath.Join(s.out, ".xdspub/control.sock"), nil)
	if err == nil {
		_, err = changed(filepath.Join(s.out, "lds/lds.pb"), nil)
	}
	return w, err
}

// envoy starts an Envoy that reads the output directory of a format, and waits until it is live.
func (s *site) envoy(binary, format string) error {
	i := len(s.envoys)
	address, bootstrap := filepath.Join(s.dir, fmt.Sprintf("address-%d", i)), filepath.Join(s.dir, fmt.Sprintf("bootstrap-%d.yaml", i))
	// By default, Envoy flushes its statistics every 5 s. With 10,000 clusters, the flushes would cost more than
	// the measured work.
	text := fmt.Sprintf(`node: {id: bench, cluster: bench}
stats_flush_interval: 299s
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  cds_config: {path_config_source: {path: %[1]s/cds/cds.%[2]s}}
  lds_config: {path_config_source: {path: %[1]s/lds/lds.%[2]s}}
`, s.out, format)
	if err := put(bootstrap, text); err != nil {
		return err
	}
	e, err := begin(binary, "-c", bootstrap, "--concurrency", "1", "-l", "error", "--use-dynamic-base-id", "--admin-address-path", address)
	if err != nil {
		return err
	}
	s.envoys = append(s.envoys, e)
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if at, err := os.ReadFile(address); err == nil && ask("http://"+string(at)+"/ready") == "LIVE\n" {
			s.admins = append(s.admins, "http://"+string(at))
			return nil
		}
	}
	return fmt.Errorf("an Envoy is not live\n%s", &e.log)
}

func (s *site) end() {
	for _, e := range s.envoys {
		e.end()
	}
}

// ask returns the answer of an admin interface; "" without an answer.
func ask(url string) string {
	r, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

// takes waits until the line of a text statistic, such as a version_text, differs from was, and returns the line.
func takes(admin, statistic, was string) (string, error) {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if is := ask(admin + "/stats?type=TextReadouts&filter=^" + statistic + "$"); is != "" && is != was {
			return is, nil
		}
	}
	return "", fmt.Errorf("an Envoy does not take %s", statistic)
}

// gone waits until the file does not exist.
func gone(path string) error {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return nil
		}
	}
	return fmt.Errorf("%s stays", path)
}

// measureConfirmation prints the time from an edit of an endpoint assignment until the watch has completed its
// publication, with and without --envoy-admin, and Envoy's processor time for the edit.
func measureConfirmation(dir, xdspub, envoy string, sizes []int) error {
	fmt.Printf("\nOne endpoint assignment of a running Envoy, from the rename in the source tree until the watch is through with "+
		"it: median of %d, and the mean processor time of Envoy\n\n| | without | with confirmation |\n|---|---|---|\n", edits)
	for _, n := range sizes {
		row := fmt.Sprintf("| %d clusters |", n)
		for _, confirms := range []bool{false, true} {
			wall, cpu, err := confirmedEdits(filepath.Join(dir, fmt.Sprintf("confirm-%d-%t", n, confirms)), xdspub, envoy, n, confirms)
			if err != nil {
				return err
			}
			row += fmt.Sprintf(" %.0f ms, Envoy %.0f ms CPU |", milliseconds(wall), milliseconds(cpu))
		}
		fmt.Println(row)
	}
	return nil
}

func confirmedEdits(dir, xdspub, envoy string, n int, confirms bool) (wall, cpu time.Duration, err error) {
	s, err := newSite(dir, n)
	if err != nil {
		return 0, 0, err
	}
	defer s.end()
	first, err := s.watch(xdspub)
	if err != nil {
		return 0, 0, err
	}
	first.end()
	if err := s.envoy(envoy, "pb"); err != nil {
		return 0, 0, err
	}
	args := []string{"--rescan", "1h"}
	if confirms {
		args = append(args, "--envoy-admin", s.admins[0])
	}
	w, err := s.watch(xdspub, args...)
	if err != nil {
		return 0, 0, err
	}
	defer w.end()
	time.Sleep(15 * time.Second) // by then, the watch holds signatures instead of the contents of files
	record := filepath.Join(s.out, ".xdspub/manifest.json")
	was, err := changed(record, nil)
	if err != nil {
		return 0, 0, err
	}
	var walls []time.Duration
	var began time.Duration
	for change := range edits + 2 { // the first two do not count: the watch does not know Envoy's state yet
		if change == 2 {
			began = s.envoys[0].cpu()
		}
		start := time.Now()
		if err := put(filepath.Join(s.source, "endpoints.yaml"), sample.Topology{Clusters: n}.Endpoints(n, change+1)); err != nil {
			return 0, 0, err
		}
		if was, err = changed(record, was); err != nil {
			return 0, 0, err
		}
		if err := gone(filepath.Join(s.out, ".xdspub/intent")); err != nil { // the last file of a publication
			return 0, 0, err
		}
		walls = append(walls, time.Since(start))
		time.Sleep(500 * time.Millisecond)
	}
	walls = walls[2:]
	slices.Sort(walls)
	return walls[edits/2], (s.envoys[0].cpu() - began) / edits, nil
}

// questions are requests to an admin interface about one file or one process.
var questions = []string{
	"/ready",
	"/server_info",
	"/config_dump?mask=last_updated&name_regex=^$",
	"/config_dump?resource=dynamic_endpoint_configs&include_eds&name_regex=^service-00000$",
	"/clusters?filter=^service-00000$",
	"/stats?type=TextReadouts&filter=^cluster_manager\\.cds\\.version_text$",
	"/stats?type=Histograms&filter=^server\\.initialization_time_ms$",
	"/stats?type=Counters&usedonly&filter=^cluster_manager\\.cds",
	"/stats?type=Gauges&usedonly&filter=^cluster_manager\\.cds",
	"/stats?usedonly&filter=\\.update_success$",
}

// measureQuestions prints Envoy's processor time for the answer to each of questions.
func measureQuestions(dir, xdspub, envoy string, sizes []int) error {
	const times = 50
	rows := make([]string, len(questions))
	fmt.Printf("\nOne answer of an admin interface: the mean processor time of Envoy, of %d\n\n| |", times)
	for _, n := range sizes {
		fmt.Printf(" %d clusters |", n)
		s, err := newSite(filepath.Join(dir, fmt.Sprintf("questions-%d", n)), n)
		if err != nil {
			return err
		}
		defer s.end()
		w, err := s.watch(xdspub)
		if err != nil {
			return err
		}
		w.end()
		if err := s.envoy(envoy, "pb"); err != nil {
			return err
		}
		for i, q := range questions {
			began := s.envoys[0].cpu()
			for range times {
				if ask(s.admins[0]+q) == "" {
					return fmt.Errorf("%s: no answer", q)
				}
			}
			rows[i] += fmt.Sprintf(" %.1f ms |", milliseconds((s.envoys[0].cpu()-began)/times))
		}
	}
	fmt.Print("\n|---|" + strings.Repeat("---|", len(sizes)) + "\n")
	for i, q := range questions {
		fmt.Printf("| `%s` |%s\n", q, rows[i])
	}
	return nil
}

// measureRaw prints the time from an edit of one cluster until Envoy has accepted it: by a watch of the source
// tree, and by a rename of a ready file in the output directory.
func measureRaw(dir, xdspub, envoy string, sizes []int) error {
	fmt.Printf("\nOne cluster's edit, from the save until Envoy has taken it: median of %d\n\n| | a ready pb renamed by hand | "+
		"`xdspub watch`, pb | beside a tenth more than by hand | the same as YAML renamed by hand |\n|---|---|---|---|---|\n", edits)
	for _, n := range sizes {
		row := fmt.Sprintf("| %d clusters |", n)
		var byHand time.Duration
		for _, by := range []string{"pb", "watch", "yaml"} {
			wall, err := savedToTaken(filepath.Join(dir, fmt.Sprintf("raw-%d-%s", n, by)), xdspub, envoy, n, by)
			if err != nil {
				return err
			}
			row += fmt.Sprintf(" %.0f ms |", milliseconds(wall))
			switch by {
			case "pb":
				byHand = wall
			case "watch":
				row += fmt.Sprintf(" %+.0f ms |", milliseconds(wall)-1.1*milliseconds(byHand))
			}
		}
		fmt.Println(row)
	}
	return nil
}

func savedToTaken(dir, xdspub, envoy string, n int, by string) (time.Duration, error) {
	s, err := newSite(dir, n)
	if err != nil {
		return 0, err
	}
	defer s.end()
	// Two states of one cluster, rendered.
	edited := func(change int) string {
		return strings.Replace(sample.Part(0, 1), "connect_timeout: 1s", fmt.Sprintf("connect_timeout: %ds", 2+change%2), 1)
	}
	source, published := filepath.Join(s.source, "clusters", "000000.yaml"), filepath.Join(s.out, "cds/cds.pb")
	format := map[string]string{"pb": "pb", "watch": "pb", "yaml": "yaml"}[by]
	if by == "yaml" {
		published = filepath.Join(s.out, "cds/cds.yaml")
	}
	var ready []string
	for change := range 2 {
		if err := put(source, edited(change)); err != nil {
			return 0, err
		}
		if said, err := exec.Command(xdspub, "render", "--out", s.out, "--format", format, "--eds", "file", "--step-gap", "0s",
			s.source).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w\n%s", err, said)
		}
		data, err := os.ReadFile(published)
		if err != nil {
			return 0, err
		}
		ready = append(ready, string(data))
	}
	if err := s.envoy(envoy, format); err != nil {
		return 0, err
	}
	if by == "watch" {
		w, err := s.watch(xdspub, "--rescan", "1h")
		if err != nil {
			return 0, err
		}
		defer w.end()
		time.Sleep(15 * time.Second) // from then on, signatures replace the contents of files
	}
	const statistic = `cluster_manager\.cds\.version_text`
	was := ask(s.admins[0] + "/stats?type=TextReadouts&filter=^" + statistic + "$")
	var walls []time.Duration
	for change := range edits {
		start := time.Now()
		if by == "watch" {
			err = put(source, edited(change))
		} else {
			err = put(published, ready[change%2])
		}
		if err == nil {
			was, err = takes(s.admins[0], statistic, was)
		}
		if err != nil {
			return 0, err
		}
		walls = append(walls, time.Since(start))
		time.Sleep(500 * time.Millisecond)
	}
	slices.Sort(walls)
	return walls[edits/2], nil
}

// manyEdits is the number of edits between the two measurements of a watch's memory.
const manyEdits = 1_000

// measureIdle prints the processor time of an idle watch that confirms with three Envoys, and its memory before and
// after manyEdits.
func measureIdle(dir, xdspub, envoy string, sizes []int) error {
	fmt.Printf("\nA watch that nothing happens to, beside three Envoys (`--eds file`, a file for each cluster): its part of a "+
		"core over ten minutes from its first rest on, the processor time of the first of these, its peak memory, and what it has "+
		"resident then and after %d edits\n\n| | processor | the first minute | peak | resident | after the edits "+
		"|\n|---|---|---|---|---|---|\n", manyEdits)
	for _, n := range sizes {
		if err := idle(filepath.Join(dir, fmt.Sprintf("idle-%d", n)), xdspub, envoy, n); err != nil {
			return err
		}
	}
	return nil
}

func idle(dir, xdspub, envoy string, n int) error {
	s, err := newSite(dir, n)
	if err != nil {
		return err
	}
	defer s.end()
	first, err := s.watch(xdspub)
	if err != nil {
		return err
	}
	first.end()
	var args []string
	for range 3 {
		if err := s.envoy(envoy, "pb"); err != nil {
			return err
		}
		args = append(args, "--envoy-admin", s.admins[len(s.admins)-1])
	}
	w, err := s.watch(xdspub, args...)
	if err != nil {
		return err
	}
	defer w.end()
	w.comeToRest()
	const length = 10 * time.Minute
	began := w.cpu()
	time.Sleep(time.Minute)
	minute := w.cpu() - began
	time.Sleep(length - time.Minute)
	fmt.Printf("| %d clusters | %.3f %% | %.0f ms | %.0f MiB "+
		"| %.0f MiB |", n, 100*float64(w.cpu()-began)/float64(length), milliseconds(minute), memory(w.Process.Pid, "VmHWM"), memory(w.Process.Pid, "VmRSS"))
	record := filepath.Join(s.out, ".xdspub/manifest.json")
	was, err := changed(record, nil)
	if err != nil {
		return err
	}
	for change := range manyEdits {
		if err := put(filepath.Join(s.source, "endpoints.yaml"), sample.Topology{Clusters: n}.Endpoints(n, change+1)); err != nil {
			return err
		}
		if was, err = changed(record, was); err != nil {
			return err
		}
	}
	fmt.Printf(" %.0f MiB |\n", memory(w.Process.Pid, "VmRSS"))
	return nil
}

// memory returns a figure of a process's memory from the kernel, in MiB: VmRSS is the resident memory, VmHWM
// its peak.
func memory(pid int, field string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	var kib float64
	if _, rest, ok := strings.Cut(string(data), field+":"); ok {
		_, _ = fmt.Sscan(rest, &kib)
	}
	return kib / 1024
}
