package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"sync"
)

// verdicts caches Envoy's verdicts by configuration, also for later runs. Rules of xdspub change between runs, and
// Envoy does not.
type verdicts struct {
	mu    sync.Mutex
	known map[string]verdict
	file  *os.File
}

// line is a line of the file of verdicts.
type line struct {
	Sum     string
	Verdict verdict
}

// openVerdicts reads the verdicts in a file, which gets further verdicts. With an empty name, verdicts has no file.
func openVerdicts(name string) (*verdicts, error) {
	v := &verdicts{known: make(map[string]verdict)}
	if name == "" {
		return v, nil
	}
	var err error
	if v.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(v.file)
	lines.Buffer(nil, 2*maxSaid)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, err
		}
		v.known[l.Sum] = l.Verdict
	}
	return v, lines.Err()
}

func (v *verdicts) of(u unit) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[v.key(u)]
	return known, ok
}

func (v *verdicts) add(u unit, new verdict) error {
	if v.file == nil {
		return nil
	}
	data, err := json.Marshal(line{v.key(u), new})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, err = v.file.Write(append(data, '\n'))
	return err
}

func (v *verdicts) key(u unit) string {
	sum := u.sum()
	return hex.EncodeToString(sum[:16])
}

func (v *verdicts) close() {
	if v.file != nil {
		v.file.Close()
	}
}
