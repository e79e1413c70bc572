package watch

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// notifier gives the events of folders, by inotify. Unlike fsnotify it tells when a file
// is whole: when it was renamed into its place, and when its writer has closed it.
//
// The kernel knows folders by inode: one that is added by a second path keeps the first.
type notifier struct {
	file   *os.File
	events chan event
	errors chan error
	end    chan struct{} // closed by close
	reader sync.WaitGroup

	mu    sync.Mutex
	paths map[int32]string // by the kernel's number
	byDir map[string]int32
}

const interesting = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE |
	unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

func newNotifier() (*notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	n := &notifier{
		file: os.NewFile(uintptr(fd), "inotify"), events: make(chan event), errors: make(chan error), end: make(chan struct{}),
		paths: make(map[int32]string), byDir: make(map[string]int32),
	}
	n.reader.Go(n.read)
	return n, nil
}

// close frees what the notifier holds. No event comes after it.
func (n *notifier) close() {
	close(n.end)
	n.file.Close()
	n.reader.Wait()
}

// add watches a folder.
func (n *notifier) add(dir string) error {
	n.mu.Lock() // its first event may come before its number is known
	defer n.mu.Unlock()
	return n.control(func(fd int) error {
		number, err := unix.InotifyAddWatch(fd, dir, interesting)
		if err != nil {
			return err
		}
		if _, ok := n.paths[int32(number)]; ok {
			return nil // already, mostly by this path
		}
		n.paths[int32(number)], n.byDir[dir] = dir, int32(number)
		return nil
	})
}

// remove ends the watch on a folder, if there is one.
func (n *notifier) remove(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if number, ok := n.byDir[dir]; ok {
		n.forget(number)
	}
}

// forget ends a watch. What is still on its way from it is dropped.
func (n *notifier) forget(number int32) {
	delete(n.byDir, n.paths[number])
	delete(n.paths, number)
	_ = n.control(func(fd int) error {
		_, err := unix.InotifyRmWatch(fd, uint32(number)) // fails where the kernel has ended it
		return err
	})
}

// control does something with the file descriptor, which is open for that long.
func (n *notifier) control(do func(fd int) error) error {
	conn, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := conn.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}

// read hands events over until the notifier is closed.
func (n *notifier) read() {
	buffer := make([]byte, 64<<10)
	for {
		size, err := n.file.Read(buffer)
		if err != nil {
			select {
			case n.errors <- err: // after which nothing comes until the rescan
			case <-n.end:
			}
			return
		}
		for rest := buffer[:size]; len(rest) >= unix.SizeofInotifyEvent; {
			number, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:length], []byte{0})
			if e, ok := n.event(number, mask, string(name)); ok && !n.hand(e) {
				return
			}
			rest = rest[length:]
		}
	}
}

func (n *notifier) hand(e event) bool {
	select {
	case n.events <- e:
		return true
	case <-n.end:
		return false
	}
}

// event says what an event of the kernel means, if anything.
func (n *notifier) event(number int32, mask uint32, name string) (event, bool) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return event{op: overflowed}, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	dir, known := n.paths[number]
	if !known {
		return event{}, false
	}
	if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0 {
		n.forget(number) // under this name there is nothing now, or another folder
	}
	path := dir
	if name != "" {
		path = filepath.Join(dir, name)
	}
	switch {
	case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		return event{path, removed}, true
	case mask&unix.IN_MOVED_TO != 0 && mask&unix.IN_ISDIR == 0:
		return event{path, replaced}, true
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		return event{path, created}, true
	case mask&unix.IN_MODIFY != 0:
		return event{path, written}, true
	case mask&unix.IN_CLOSE_WRITE != 0:
		return event{path, finished}, true
	case mask&unix.IN_ATTRIB != 0:
		return event{path, attributes}, true
	}
	return event{}, false
}
