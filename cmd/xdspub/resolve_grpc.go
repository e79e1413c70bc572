package main

import (
	"fmt"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/setup/grpcboot"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// resolveGRPC prints which listener a gRPC program asks for, and whether a source tree has it.
func resolveGRPC(c *call) error {
	if err := resolveAlone(c); err != nil {
		return err
	}
	target := c.Resolve.Value
	read, from, err := grpcFromEnvironment()
	if err != nil {
		return err
	}
	checked := check.GRPCBootstrap(read)
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	resolve := read.Config.Target
	if isAddress(target) {
		resolve = read.Config.Address
	}
	r, err := resolve(target)
	if err != nil {
		return &exit{exitRefused, err}
	}
	line := func(name, text string) { fmt.Fprintf(c.App.Writer, "%-12s%s\n", name, text) }
	line("bootstrap:", from)
	for _, s := range r.Servers {
		line("server:", fmt.Sprintf("%s, by %s", s.URI, credentialTypes(s)))
	}
	authority := "none"
	if r.Authority != nil {
		authority = fmt.Sprintf("%q", *r.Authority)
	}
	line("authority:", authority)
	line("listener:", r.Listener)
	if r.ByGo != "" {
		line("by grpc-go:", r.ByGo)
	}
	if c.NArg() == 0 {
		return nil
	}
	return inTree(c, r, line)
}

// resolveAlone returns an error for options and arguments that make no sense with --resolve.
func resolveAlone(c *call) error {
	for _, r := range settings.WrittenGRPC() {
		// A variable may be for another command.
		if r.Origin(c.Settings).OnlyOnLine() {
			return usagef("--%s is for a bootstrap that is written, and --resolve reads one: give only one of them", r.Name())
		}
	}
	target := c.Resolve.Value
	if !strings.HasPrefix(target, "xds:") && !isAddress(target) {
		return c.Resolve.Invalid(target, "write xds:///PATH, xds://NAME/PATH, or the IP:PORT of a server")
	}
	if c.NArg() > 1 {
		_, err := oneArgument(c, "SRC")
		return err
	}
	return nil
}

func credentialTypes(s grpcboot.Server) string {
	var types []string
	for _, creds := range s.Credentials {
		types = append(types, creds.Type)
	}
	return strings.Join(types, ", else ")
}

// inTree prints whether a source tree has the resolved listener.
func inTree(c *call, r *grpcboot.Resolved, line func(name, text string)) error {
	source := c.Args().First()
	v, o, err := settingsAndSource(c, source, "grpc")
	if err != nil {
		return err
	}
	checked, err := check.Once(c.Context, o)
	if err != nil {
		return err
	}
	refused := checked.Invalid(v.WarningsAsErrors.Value)
	printFindings(c, checked, refused)
	if refused {
		faults := "errors"
		if checked.Accepted() {
			faults = "warnings"
		}
		line("tree:", fmt.Sprintf("%s has %s, and is not served", source, faults))
		return &exit{status: exitRefused}
	}
	names := []string{xdstp.Canonical(r.Listener)}
	if byGo := xdstp.Canonical(r.ByGo); byGo != "" && byGo != names[0] {
		names = append(names, byGo)
	}
	missing := false
	for _, name := range names {
		text, ok := listenerIn(checked.Snapshot, source, name, r.OfServer)
		line("tree:", text)
		missing = missing || !ok
	}
	if missing {
		return &exit{status: exitRefused}
	}
	return nil
}

// listenerIn returns the place of a listener in a tree. ok is false if the listener is missing, or of the
// wrong kind.
func listenerIn(s *xds.Snapshot, source, name string, ofServer bool) (text string, ok bool) {
	found := s.Lookup(xds.Listener, name)
	if found == nil {
		text = fmt.Sprintf("%s has no listener %q", source, name)
		var names []string
		for _, r := range s.Of(xds.Listener) {
			names = append(names, r.Name)
		}
		if meant := settings.Nearest(names, name); meant != "" {
			text += fmt.Sprintf(": did you mean %s?", meant)
		}
		return text, false
	}
	at := found.Origin.Range("").Position
	isServer := found.Message().(*listenerv3.Listener).GetApiListener() == nil
	switch {
	case isServer && !ofServer:
		return fmt.Sprintf("%s: the listener has no api_listener, which a client needs", at), false
	case !isServer && ofServer:
		return fmt.Sprintf("%s: the listener has an api_listener: it is for clients, and a server refuses it", at), false
	}
	return at.String(), true
}
