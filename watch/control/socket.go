package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// bound is a socket in an output directory.
type bound struct {
	*net.UnixListener
	path string
	root *os.Root    // the socket's folder, even if its path has changed
	info os.FileInfo // of the socket
	// ended is closed when the Server no longer accepts connections.
	ended chan struct{}
}

// bind creates the socket in the directory out. The socket gets its final name only when its mode is set and
// it accepts connections, and then replaces an old socket.
func bind(out string) (*bound, error) {
	b := &bound{path: Path(out), ended: make(chan struct{})}
	var err error
	if b.root, err = openFolder(filepath.Dir(b.path)); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := b.listen(); err != nil {
		b.root.Close()
		return nil, fmt.Errorf("control socket %s: %w", b.path, err)
	}
	return b, nil
}

// Forget removes the socket of the last watch from the directory out. The caller has locked the directory, so
// no watch is running.
func Forget(out string) error {
	root, err := openFolder(filepath.Dir(Path(out)))
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	defer root.Close()
	for _, name := range []string{socket, ended} {
		if info, err := root.Lstat(name); err != nil || info.Mode().Type() != fs.ModeSocket {
			continue // no file, or not a socket
		}
		if err := root.Remove(name); err != nil {
			return fmt.Errorf("control socket %s: %w", Path(out), err)
		}
	}
	return nil
}

// endOf returns when the last watch of the directory out ended by itself; ok is false if no such watch has
// left its socket.
func endOf(out string) (at time.Time, ok bool, err error) {
	info, err := os.Lstat(filepath.Join(filepath.Dir(Path(out)), ended))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, err
	}
	return info.ModTime(), info.Mode().Type() == fs.ModeSocket, nil
}

// openFolder opens a folder, and fails for a symbolic link: links in an output directory are never followed.
func openFolder(path string) (*os.Root, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errors.New("a symbolic link")
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return root, nil
}

func (b *bound) listen() error {
	name, done, err := address(filepath.Join(filepath.Dir(b.path), unlisted))
	if err != nil {
		return err
	}
	defer done()
	if err := b.root.Remove(unlisted); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if b.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}); err != nil {
		if wrapped, ok := errors.AsType[*net.OpError](err); ok {
			err = wrapped.Err // without the name, which address may have shortened
		}
		return err
	}
	b.SetUnlinkOnClose(false) // the socket is renamed
	err = b.root.Chmod(unlisted, 0o600)
	if err == nil {
		b.info, err = b.root.Lstat(unlisted)
	}
	if err == nil {
		err = b.root.Rename(unlisted, socket)
	}
	if err == nil {
		_ = b.root.Remove(ended) // clients ignore the old file while a socket exists
	}
	if err != nil {
		b.UnixListener.Close()
		_ = b.root.Remove(unlisted) // if Remove fails, the next bind removes the file
	}
	return err
}

// isCurrent reports whether a client of the directory out would reach this socket, and whether the Server
// accepts its connections.
func (b *bound) isCurrent(out string) bool {
	select {
	case <-b.ended: // for example, out of memory
		return false
	default:
	}
	info, err := os.Lstat(Path(out))
	return err == nil && os.SameFile(info, b.info)
}

// close closes the socket and removes its file, unless another process has replaced the file. With keep,
// close renames the file instead and sets its time, which records the end of the watch. A rename works on a
// full disk.
func (b *bound) close(keep bool) {
	if info, err := b.root.Lstat(socket); err == nil && os.SameFile(info, b.info) {
		if now := time.Now(); keep && b.root.Rename(socket, ended) == nil {
			_ = b.root.Chtimes(ended, now, now)
		} else {
			_ = b.root.Remove(socket) // a remaining file is harmless: connecting fails
		}
	}
	b.UnixListener.Close()
	b.root.Close()
}
