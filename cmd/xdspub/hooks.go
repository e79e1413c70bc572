package main

import (
	"xdspub/cmd/settings"
	"xdspub/observe/hook"
)

// newHooks returns the hooks of --on-event and --webhook; nil for none. Only watch and serve have hooks, even if a
// settings file has them for another command.
func newHooks(v *call) (*hook.Hooks, error) {
	if v.Command.Name != "watch" && v.Command.Name != "serve" {
		return nil, nil
	}
	o := hook.Options{Secret: v.WebhookSecret.Value, CA: v.WebhookCA.Value}
	for _, text := range v.OnEvent.Value {
		command, err := hook.ParseCommand(text)
		if err != nil {
			return nil, v.OnEvent.Invalid(text, err.Error())
		}
		o.Commands = append(o.Commands, command)
	}
	for _, text := range v.Webhook.Value {
		webhook, err := hook.ParseWebhook(text)
		if err != nil {
			return nil, v.Webhook.Invalid(hook.Shown(text), err.Error())
		}
		o.Webhooks = append(o.Webhooks, webhook)
	}
	forCheck := func(name string) bool { return name == "webhook-ca" && len(v.RolloutCheck.Value) > 0 }
	if name := settings.FirstGiven(v.Settings, settings.Hooks()[2:]); name != "" && len(o.Webhooks) == 0 && !forCheck(name) {
		return nil, usagef("--%s needs --webhook: it says how events are posted", name)
	}
	if len(o.Commands)+len(o.Webhooks) > 0 {
		o.Version = buildVersion().program
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return hook.New(o), nil
}
