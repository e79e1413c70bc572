package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"xdspub/internal/usergroup"

	"golang.org/x/sys/unix"
)

// socketMode is that of a Unix socket: connecting needs the right to write.
const socketMode = 0o660

// socket is a Unix socket that removes its file at its end.
type socket struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

// listenUnix listens on a Unix socket. It replaces the file of a process that was killed, and
// nothing else. The folder is locked meanwhile, so that of two processes that start at once one
// finds the other.
func listenUnix(ctx context.Context, path, group string) (net.Listener, error) {
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := closedConfig.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	s := &socket{UnixListener: l.(*net.UnixListener), path: path}
	s.SetUnlinkOnClose(false) // by then the file may be another's
	if gid >= 0 {
		err = os.Lchown(path, -1, gid)
	}
	if err == nil {
		err = os.Chmod(path, socketMode)
	}
	if err == nil {
		s.info, err = os.Lstat(path)
	}
	if err != nil {
		l.Close()
		_ = os.Remove(path) // the next one does, where this can't
		return nil, err
	}
	return s, nil
}

// closedConfig makes sockets that only the owner may connect to, until they have their group: on
// Linux a file gets the mode that its socket had before. Elsewhere it is the umask's.
var closedConfig = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
}}

// Close ends the listener, and removes its file unless that is another's by now.
func (s *socket) Close() error {
	if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.info) {
		_ = os.Remove(s.path) // one that is left says that nobody listens
	}
	return s.UnixListener.Close()
}

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
