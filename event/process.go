package event

import "log/slog"

// Watching means that a watch has begun, or that a source tree is served. It holds the lock of
// the output directory, where there is one.
type Watching struct {
	Source string // the source tree, as it was given
	Out    string `event:"optional"` // the output directory, without symbolic links
	PID    int    // the process id of the watch
}

func (Watching) kind() Kind { return Kind{"watching", slog.LevelInfo, "watching the source tree"} }

// Ended means that a watch has ended, since SIGTERM or SIGINT asked it to. What is published
// stays.
type Ended struct {
	Published string `event:"optional"` // the id of the published snapshot
}

func (Ended) kind() Kind { return Kind{"ended", slog.LevelInfo, "the watch has ended"} }

// TargetRemoved means that the settings have a target no more. What is published for it stays, and nothing keeps it
// up to date.
//
// Do: remove its folder once no Envoy reads it.
type TargetRemoved struct {
	Published string `event:"optional"` // the id of the snapshot that is published for it
}

func (TargetRemoved) kind() Kind {
	return Kind{"target-removed", slog.LevelInfo, "the settings have the target no more; what is published for it stays"}
}

// Interrupted means that a watch has ended within a change: some of its steps are published.
// Each stop of a change is a configuration that an Envoy can start from.
//
// Do: start the watch again.
type Interrupted struct {
	Error error // where it stopped
}

func (Interrupted) kind() Kind {
	return Kind{"interrupted", slog.LevelWarn, "stopped during a change; the next start resumes it"}
}

// SettingsRead means that the settings file has changed; its settings are in effect.
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

// ControlSocketFailed means that the watch has no control socket: `xdspub status` and
// `render --retry-held` do not reach it. It publishes all the same.
//
// Do: use SIGHUP in place of --retry-held, or mend what error says.
type ControlSocketFailed struct {
	Error error
}

func (ControlSocketFailed) kind() Kind {
	return Kind{"control-socket-failed", slog.LevelWarn, "no control socket: other commands can't reach this watch, SIGHUP can"}
}

// ControlSocketOpen means that other commands reach the watch after control-socket-failed.
type ControlSocketOpen struct{}

func (ControlSocketOpen) kind() Kind {
	return Kind{"control-socket-open", slog.LevelInfo, "other commands can reach this watch now"}
}

// RetryRequested means that another command asked the watch to retry what is held.
type RetryRequested struct{}

func (RetryRequested) kind() Kind {
	return Kind{"retry-requested", slog.LevelInfo, "another command asked to retry what is held"}
}
