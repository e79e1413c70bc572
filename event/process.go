package event

import (
	"log/slog"
	"time"
)

// Watching means that a watch has begun, of `xdspub watch` or `xdspub serve`. The process holds the lock of the
// output directory, if there is one.
type Watching struct {
	Source string // the source tree, as it was given
	Out    string `event:"optional"` // the output directory, without symbolic links
	PID    int    // the process id of the watch
}

func (Watching) kind() Kind { return Kind{"watching", slog.LevelInfo, "watching the source tree"} }

// Ended means that a watch has ended because of SIGTERM or SIGINT. The published files stay.
type Ended struct {
	Published string `event:"optional"` // the id of the published snapshot
}

func (Ended) kind() Kind { return Kind{"ended", slog.LevelInfo, "the watch has ended"} }

// TargetRemoved means that the settings no longer have a target. The published files of the target stay
// without updates.
//
// Do: remove the folder of the target once no Envoy reads its files.
type TargetRemoved struct {
	Published string `event:"optional"` // the id of the target's published snapshot
}

func (TargetRemoved) kind() Kind {
	return Kind{"target-removed", slog.LevelInfo, "the settings no longer have the target; its published files stay"}
}

// Interrupted means that a watch has ended within a change, after some of its steps. An Envoy can start from
// the files between any two steps.
//
// Do: start the watch again.
type Interrupted struct {
	Error error // the error with which the change stopped
}

func (Interrupted) kind() Kind {
	return Kind{"interrupted", slog.LevelWarn, "stopped during a change; the next start resumes it"}
}

// SettingsRead means that the settings file has changed. The new settings are in effect.
type SettingsRead struct{}

func (SettingsRead) kind() Kind {
	return Kind{"settings-read", slog.LevelInfo, "read the changed settings file"}
}

// SettingIgnored means that the settings file has changed a setting that a running watch can't
// change.
//
// Do: start the watch again.
type SettingIgnored struct {
	Setting string // the name of the setting
}

func (SettingIgnored) kind() Kind {
	return Kind{"setting-ignored", slog.LevelWarn, "a changed setting takes effect at the next start"}
}

// InternalError means that xdspub has a bug: a part of the program panicked. The process goes on. A reconcile that
// panics publishes nothing, and the last valid snapshot stays published; every change and every rescan tries again,
// and recovered ends the event. A request that panics ends alone. If the part that follows the source tree or accepts
// connections panics, the process ends with status 3. The same error is logged again after ten minutes.
//
// Do: report the bug with error and stack. If error names a rule, leave the rule out by --disable RULE until the bug
// is mended.
type InternalError struct {
	Error  error  // the panic, and what the program did
	Stack  string // the stack of the panic, at most 8 KiB
	Reason string `event:"optional"` // of the reconcile: start, change, rescan, SIGHUP, retry-held or trim
}

func (InternalError) kind() Kind {
	return Kind{"internal-error", slog.LevelError, "xdspub has a bug; report the bug with the stack"}
}

// SystemdUnreachable means that systemd does not take the notifications of xdspub: its socket is gone or full. xdspub
// goes on. With WatchdogSec=, systemd ends xdspub if systemd gets no notification in time. The event is logged once
// until systemd-reachable.
//
// Do: see error. In a container, NOTIFY_SOCKET must be a socket that xdspub may write to; unset NOTIFY_SOCKET if no
// systemd waits.
type SystemdUnreachable struct {
	Socket string // NOTIFY_SOCKET
	Error  error  // the cause
}

func (SystemdUnreachable) kind() Kind {
	return Kind{"systemd-unreachable", slog.LevelWarn, "systemd does not take the state of xdspub; xdspub goes on"}
}

// SystemdReachable means that systemd takes notifications after systemd-unreachable. xdspub has told its state again.
type SystemdReachable struct{}

func (SystemdReachable) kind() Kind {
	return Kind{"systemd-reachable", slog.LevelInfo, "systemd takes the state of xdspub again"}
}

// ControlSocketFailed means that the watch has no control socket: `xdspub status` and `render --retry-held` do
// not reach the watch. Publishing works nevertheless.
//
// Do: use SIGHUP in place of --retry-held, or remove the cause in error.
type ControlSocketFailed struct {
	Error error // the cause
}

func (ControlSocketFailed) kind() Kind {
	return Kind{"control-socket-failed", slog.LevelWarn, "the watch has no control socket; other commands can't reach the watch, but SIGHUP can"}
}

// ControlSocketOpen means that other commands reach the watch after control-socket-failed.
type ControlSocketOpen struct{}

func (ControlSocketOpen) kind() Kind {
	return Kind{"control-socket-open", slog.LevelInfo, "other commands can reach this watch now"}
}

// RetryRequested means that another command asked the watch to retry the held snapshot.
type RetryRequested struct{}

func (RetryRequested) kind() Kind {
	return Kind{"retry-requested", slog.LevelInfo, "another command asked to retry the held snapshot"}
}

// Status means that SIGUSR1 asked for the state of a watch. With targets, each target has an event.
type Status struct {
	Faults        []string  // the faults, as in /readyz; empty for none
	Snapshot      string    `event:"optional"` // the id of the published snapshot
	Revision      string    `event:"optional"` // the git commit of the source tree at the last read, with +dirty if the tree differs from that commit
	Since         time.Time // when the watch began
	Pass          string    `event:"optional"` // the outcome of the last reconcile: published, refused or failed
	PassEnded     time.Time `event:"optional"` // when the last reconcile ended
	Running       string    `event:"optional"` // the reason of the reconcile that runs now
	EnvoysInSync  *int      `event:"optional"` // how many Envoys of --envoy-admin run the published files
	Envoys        *int      `event:"optional"` // how many Envoys --envoy-admin names
	ClientsInSync *int      `event:"optional"` // how many connected clients of the server run the snapshot
	Clients       *int      `event:"optional"` // how many clients are connected to the server
}

func (Status) kind() Kind { return Kind{"status", slog.LevelInfo, "the state of the watch"} }
