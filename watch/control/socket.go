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

// bound is a socket that stands in an output directory.
type bound struct {
	*net.UnixListener
	path string
	root *os.Root    // of the folder that it was made in, whatever became of its path
	info os.FileInfo // of the socket
	// ended is closed when nobody accepts its connections any more.
	ended chan struct{}
}

// bind makes the socket of the directory out. It gets its name when it has its
// mode and takes connections, and takes the place of what was left there.
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

// Forget removes what the last watch has left in the directory out: its socket. The caller has
// locked the directory, so no watch is running.
func Forget(out string) error {
	root, err := openFolder(filepath.Dir(Path(out)))
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	defer root.Close()
	for _, name := range []string{socket, ended} {
		if info, err := root.Lstat(name); err != nil || info.Mode().Type() != fs.ModeSocket {
			continue // none, or nothing of ours
		}
		if err := root.Remove(name); err != nil {
			return fmt.Errorf("control socket %s: %w", Path(out), err)
		}
	}
	return nil
}

// endOf returns when the last watch of the directory out ended by itself; ok is false if none has left
// its socket.
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

// openFolder opens a folder that is no link: in an output directory nothing is
// followed.
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
			err = wrapped.Err // what else it says is the name, which may be a made one
		}
		return err
	}
	b.SetUnlinkOnClose(false) // it gets another name
	err = b.root.Chmod(unlisted, 0o600)
	if err == nil {
		b.info, err = b.root.Lstat(unlisted)
	}
	if err == nil {
		err = b.root.Rename(unlisted, socket)
	}
	if err == nil {
		_ = b.root.Remove(ended) // nobody looks at one that is left while there is a socket
	}
	if err != nil {
		b.UnixListener.Close()
		_ = b.root.Remove(unlisted) // the next one does, where this can't
	}
	return err
}

// stands reports whether the socket is the one that a client of the directory out
// would meet, and would be heard by.
func (b *bound) stands(out string) bool {
	select {
	case <-b.ended: // out of memory, say
		return false
	default:
	}
	info, err := os.Lstat(Path(out))
	return err == nil && os.SameFile(info, b.info)
}

// close removes the socket, unless it is another's by now, and takes no further connections. With
// keep the socket gets the name and the time that tell of the end of the watch: a rename needs no space
// on a full disk.
func (b *bound) close(keep bool) {
	if info, err := b.root.Lstat(socket); err == nil && os.SameFile(info, b.info) {
		if now := time.Now(); keep && b.root.Rename(socket, ended) == nil {
			_ = b.root.Chtimes(ended, now, now)
		} else {
			_ = b.root.Remove(socket) // one that is left says that nobody listens
		}
	}
	b.UnixListener.Close()
	b.root.Close()
}
