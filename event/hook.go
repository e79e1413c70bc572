package event

import "log/slog"

// HookFailed means that a program of --on-event has not handled an event: the program could not start, failed, did not
// end in time, or is slower than the events come. xdspub goes on. The event is logged at most once a minute for each
// program.
//
// Do: remove the cause in error.
type HookFailed struct {
	Program string // the program, without its arguments
	Error   error  // the last failure, with the end of the program's standard error
	Lost    int    // number of unhandled events since the last hook-failed
}

func (HookFailed) kind() Kind {
	return Kind{"hook-failed", slog.LevelWarn, "a program of --on-event has failed; xdspub goes on"}
}

// WebhookFailed means that the server of a webhook has not accepted an event, or is slower than the events come. xdspub
// goes on, and sends the event again if the server may accept it later. The event is logged at most once a minute for
// each webhook.
//
// Do: remove the cause in error.
type WebhookFailed struct {
	URL   string // scheme and host: the path may be a secret
	Error error  // the last failure
	Lost  int    // number of events, since the last webhook-failed, that xdspub does not send again
}

func (WebhookFailed) kind() Kind {
	return Kind{"webhook-failed", slog.LevelWarn, "a webhook did not accept an event; xdspub goes on"}
}

// HookRecovered means that a program or a webhook has accepted an event after hook-failed or webhook-failed.
type HookRecovered struct {
	Hook string // the program, or scheme and host of the webhook
	Lost int    // number of lost events since hook-failed or webhook-failed
}

func (HookRecovered) kind() Kind {
	return Kind{"hook-recovered", slog.LevelInfo, "a program or a webhook accepts events again"}
}
