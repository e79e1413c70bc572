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
	"xdspub/internal/crash"
	"xdspub/internal/usergroup"

	"golang.org/x/sys/unix"
)

// socketMode is the mode of a Unix socket. Connecting needs write permission.
const socketMode = 0o660

// socket is a listener on a Unix socket. socket recreates its file if another process removes the file, and
// removes the file on Close.
type socket struct {
	at    addr.Address
	gid   int // group of the file; -1 for the group of the process
	log   *event.Log
	close context.CancelFunc

	mu     sync.Mutex
	now    *net.UnixListener // nil once closed
	info   fs.FileInfo       // of the file of now
	absent bool              // the last look found no file of now, and could not create one
}

// listenUnix listens on a Unix socket. listenUnix replaces the stale socket of a killed process, and no other
// file.
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
	go crash.Again(ctx.Done(), func() { s.keep(ctx) }, log.Crashed)()
	return s, nil
}

// bind creates the file and listens. bind locks the folder, so that two processes that start at once don't
// both replace the file.
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
	l.SetUnlinkOnClose(false) // the file may be another process's by then
	info, err := s.open()
	if err != nil {
		l.Close()
		_ = os.Remove(s.at.Name) // if Remove fails, the next bind removes the file
		return nil, nil, err
	}
	return l, info, nil
}

// open sets the group and mode of the socket's file, so that other users may connect.
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

// lookAgain is the interval at which keep checks the file.
const lookAgain = 2 * time.Second

// keep recreates the file after another process has removed the file, until ctx ends. If the path has another
// process's file, keep logs this, and recreates the file when the other file is gone.
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

// look checks the file once, for keep.
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
	if old == nil { // closed meanwhile
		_ = os.Remove(s.at.Name)
		old = l
	} else {
		s.absent = false
		s.log.Write(event.SocketMadeAgain{Address: s.at.String()})
	}
	old.Close()
}

// Accept waits for a connection. After Close, Accept returns net.ErrClosed.
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

// Addr returns the address of the socket, with the path of its file.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: s.at.Name} }

// Close closes the listener, and removes its file unless another process has replaced the file.
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
		_ = os.Remove(s.at.Name) // a remaining file is harmless: connecting fails, and the next bind removes it
	}
	return l.Close()
}

// closedConfig creates sockets that only the owner may connect to, until open sets the group. On Linux the
// file gets the mode that the socket has before bind; on other systems the umask decides.
var closedConfig = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
}}

// removeStale removes a socket that no process listens on. removeStale returns an error for any other file,
// and nil without a file.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("the path exists and is not a socket: remove it, or listen on another path")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // a listener with a full queue counts as alive
		return errors.New("another process listens on the socket: end this process, or listen on another path")
	}
	return os.Remove(path)
}

// lockFolder locks a folder, and waits up to 5 seconds for the lock.
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

// groupID returns the number of a group; -1 for "".
func groupID(group string) (int, error) {
	if group == "" {
		return -1, nil
	}
	return usergroup.ID(group)
}
