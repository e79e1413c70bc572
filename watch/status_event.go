package watch

import (
	"time"

	"xdspub/event"
	"xdspub/watch/control"
	"xdspub/xds/clients"
)

// status returns the event about the state of w at a time. status is safe for concurrent use.
func (w *watching) status(at time.Time) event.Status {
	is := w.told.Load()
	if is == nil {
		return event.Status{Faults: []string{"the watch has not begun"}}
	}
	s := event.Status{Faults: append([]string{}, is.Faults(at)...), Snapshot: is.Snapshot, Revision: is.Revision, Since: is.Since}
	if is.Last != nil {
		s.Pass, s.PassEnded = string(is.Last.Outcome), is.Last.Ended
	}
	if is.Running != nil {
		s.Running = is.Running.Reason
	}
	if len(is.EnvoyStates) > 0 {
		inSync := 0
		for _, e := range is.EnvoyStates {
			if e.State == control.InSync {
				inSync++
			}
		}
		s.EnvoysInSync, s.Envoys = &inSync, new(len(is.EnvoyStates))
	}
	if w.clients != nil {
		list := w.clients()
		connected, behind := clients.Counts(list)
		s.ClientsInSync, s.Clients = new(connected-behind), &connected
		if fault := clients.Fault(list); fault != "" {
			s.Faults = append(s.Faults, fault)
		}
	}
	return s
}
