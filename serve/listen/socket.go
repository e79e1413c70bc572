package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/internal/usergroup"

	"golang.org/x/sys/unix"
)

// socketMode is that of a Unix socket: connecting needs the right to write.
const socketMode = 0o660

// socket is a Unix socket that removes its file at its end, and makes the file again if somebody removes it.
type socket struct {
	at    addr.Address
	gid   int // -1 for none
	log   *event.Log
	close context.CancelFunc

	mu     sync.Mutex
	now    *net.UnixListener // nil at the end
	info   fs.FileInfo       // of the file of now
	absent bool              // the file was somebody else's, or could not be made, when keep looked last
}

// listenUnix listens on a Unix socket. It replaces the file of a process that was killed, and
// nothing else.
func listenUnix(ctx context.Context, at addr.Address, group string, log *event.Log) (net.Listener, error) {
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	s := &socket{at: at, gid: gid, log: log}
	if s.now, s.info, err = s.bind(ctx); err != nil {
		return nil, err
	}
	ctx, s.close = context.WithCancel(context.WithoutCancel(ctx))
	go s.keep(ctx)
	return s, nil
}

// bind makes the file and listens. The folder is locked meanwhile, so that of two processes that start at once one
// finds the other.
func (s *socket) bind(ctx context.Context) (*net.UnixListener, fs.FileInfo, error) {
	unlock, err := lockFolder(filepath.Dir(s.at.Name))
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if err := removeStale(s.at.Name); err != nil {
		return nil, nil, err
	}
	bound, err := closedConfig.Listen(ctx, "unix", s.at.Name)
	if err != nil {
		return nil, nil, err
	}
	l := bound.(*net.UnixListener)
	l.SetUnlinkOnClose(false) // by then the file may be another's
	info, err := s.open()
	if err != nil {
		l.Close()
		_ = os.Remove(s.at.Name) // the next one does, where this can't
		return nil, nil, err
	}
	return l, info, nil
}

// open gives the file of the socket its group and its mode, so that others may connect.
func (s *socket) open() (fs.FileInfo, error) {
	if s.gid >= 0 {
		if err := os.Lchown(s.at.Name, -1, s.gid); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(s.at.Name, socketMode); err != nil {
		return nil, err
	}
	return os.Lstat(s.at.Name)
}

// lookAgain is how often keep looks for the file.
const lookAgain = 2 * time.Second

// keep makes the file again if somebody has removed it, until ctx ends. A file of somebody else stays: keep logs that, and
// makes the file once the other file is gone.
func (s *socket) keep(ctx context.Context) {
	ticks := time.NewTicker(lookAgain)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *socket) look(ctx context.Context) {
	if info, err := os.Lstat(s.at.Name); err == nil && os.SameFile(info, s.info) {
		s.absent = false
		return
	}
	l, info, err := s.bind(ctx)
	if err != nil {
		if !s.absent {
			s.log.Write(event.SocketLost{Address: s.at.String(), Error: reason(err)})
		}
		s.absent = true
		return
	}
	s.mu.Lock()
	old := s.now
	if old != nil {
		s.now, s.info = l, info
	}
	s.mu.Unlock()
	if old == nil { // it has ended meanwhile
		_ = os.Remove(s.at.Name)
		old = l
	} else {
		s.absent = false
		s.log.Write(event.SocketMadeAgain{Address: s.at.String()})
	}
	old.Close()
}

// Accept waits for a connection.
func (s *socket) Accept() (net.Conn, error) {
	for {
		s.mu.Lock()
		l := s.now
		s.mu.Unlock()
		if l == nil {
			return nil, net.ErrClosed
		}
		conn, err := l.Accept()
		s.mu.Lock()
		replaced := l != s.now
		s.mu.Unlock()
		if err == nil || !replaced {
			return conn, err
		}
	}
}

// Addr returns the path of the socket.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: s.at.Name} }

// Close ends the listener, and removes its file unless that is another's by now.
func (s *socket) Close() error {
	s.close()
	s.mu.Lock()
	l, was := s.now, s.info
	s.now = nil
	s.mu.Unlock()
	if l == nil {
		return net.ErrClosed
	}
	if info, err := os.Lstat(s.at.Name); err == nil && os.SameFile(info, was) {
		_ = os.Remove(s.at.Name) // one that is left says that nobody listens
	}
	return l.Close()
}

// closedConfig makes sockets that only the owner may connect to, until they have their group: on
// Linux a file gets the mode that its socket had before. Elsewhere it is the umask's.
var closedConfig = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
}}

// removeStale removes a socket on which nobody listens.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is no socket: it is not replaced")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // also one that does not answer, whose queue is full
		return errors.New("another process listens on it")
	}
	return os.Remove(path)
}

// lockFolder waits for its turn in a folder.
func lockFolder(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { dir.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			dir.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// groupID returns the number of a group, -1 for none.
func groupID(group string) (int, error) {
	if group == "" {
		return -1, nil
	}
	return usergroup.ID(group)
}
