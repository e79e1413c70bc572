//go:build !linux

package watch

import (
	"sync"

	"github.com/fsnotify/fsnotify"
)

// notifier gives the events of folders, by what the system has for that. None of them
// tells when a file is whole.
type notifier struct {
	fsw    *fsnotify.Watcher
	events chan event
	errors <-chan error
	queue  *errorQueue
	end    chan struct{} // closed by close
	reader sync.WaitGroup
}

func newNotifier() (*notifier, error) {
	fsw, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	queue := newErrorQueue(fsw.Errors)
	n := &notifier{fsw: fsw, events: make(chan event), errors: queue.out, queue: queue, end: make(chan struct{})}
	n.reader.Go(n.read)
	return n, nil
}

// close frees what the notifier holds. No event comes after it.
func (n *notifier) close() {
	close(n.end)
	n.fsw.Close() // closes its channels
	n.reader.Wait()
	n.queue.wait()
}

// add watches a folder.
func (n *notifier) add(dir string) error { return n.fsw.Add(dir) }

// remove ends the watch on a folder, if there is one.
func (n *notifier) remove(dir string) { _ = n.fsw.Remove(dir) } // an error says that it is gone already

// read hands events over until the notifier is closed.
func (n *notifier) read() {
	for e := range n.fsw.Events {
		select {
		case n.events <- event{e.Name, opOf(e)}:
		case <-n.end:
			return
		}
	}
}

func opOf(e fsnotify.Event) op {
	switch {
	case e.Op == fsnotify.Chmod:
		return attributes
	case e.Op == fsnotify.Write:
		return written
	case e.Has(fsnotify.Create):
		return created
	}
	return removed
}
