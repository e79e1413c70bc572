package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/event"
	"xdspub/observe"
	"xdspub/observe/hook"
	"xdspub/observe/sdnotify"
	"xdspub/serve"
	"xdspub/source/load"
	"xdspub/source/upstream"
	"xdspub/store"
)

// call is a call of a command, with its settings.
type call struct {
	Context context.Context
	App     *cli.App
	Command *cli.Command
	args    cli.Args
	*settings.Settings
	observer *observe.Observer  // nil without --http
	events   *event.History     // nil for a command that ends by itself
	notifier *sdnotify.Notifier // nil if systemd does not wait for a notification
	hooks    *hook.Hooks        // nil without --on-event and --webhook
	writer   *store.Writer      // nil without --store
	remote   load.Remote        // nil for a source tree
	upstream upstream.Options   // of remote, if it is a control plane
	// aggregate gets what remote has; nil for the own aggregate of a server, and for other commands.
	aggregate *serve.Aggregate
}

// settingsKey is the key of the settings in App.Metadata, by which readCommandLine passes them to an action.
const settingsKey = "settings"

// action returns an action of the library that calls run.
func action(run func(*call) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, _ := c.App.Metadata[settingsKey].(*settings.Settings)
		return run(&call{Context: c.Context, App: c.App, Command: c.Command, args: c.Args(), Settings: s})
	}
}

// Args returns the arguments.
func (c *call) Args() cli.Args { return c.args }

// NArg returns the number of arguments.
func (c *call) NArg() int { return c.args.Len() }

// with returns a copy of the call with other settings.
func (c *call) with(s *settings.Settings) *call {
	of := *c
	of.Settings = s
	return &of
}

// withFile returns a copy of the call with the settings file for a source tree (settings.Settings.WithFile).
func (c *call) withFile(source string) (*call, error) {
	if err := checkRemote(c, source); err != nil {
		return c, err
	}
	s, err := c.WithFile(source)
	return c.with(s), err
}

// withTypes returns a copy of the call with the types of --descriptor-set.
func (c *call) withTypes() (*call, error) {
	s, err := c.WithTypes()
	return c.with(s), err
}
