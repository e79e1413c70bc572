package settings

// Hooks returns the rows about who gets events. The first two rows choose the hooks.
func Hooks() []Row {
	return []Row{
		&setting[[]string]{about: about{name: "on-event", group: GroupHooks, usage: "run a program for each event, with the event " +
			"as JSON on standard input: `[NAME,…=]CMD`, without a shell; NAME is an event of docs/logs.md, or warn or error", outside: true},
			kind: wholeTexts, into: func(s *Settings) *Value[[]string] { return &s.OnEvent }},
		&setting[[]string]{about: about{name: "webhook", group: GroupHooks, usage: "post each event as JSON: `[NAME,…=]URL`; " +
			"slack+URL and alertmanager+URL post in the format of that program", outside: true},
			kind: wholeTexts, into: func(s *Settings) *Value[[]string] { return &s.Webhook }},
		&setting[string]{about: about{name: "webhook-secret", group: GroupHooks, usage: "sign what --webhook posts with the key in " +
			"`FILE`, in the header X-Xdspub-Signature-256; a changed FILE is read again", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.WebhookSecret }},
		&setting[string]{about: about{name: "webhook-ca", group: GroupHooks, usage: "CA certificates for --webhook, besides those of " +
			"the system: a `FILE` in PEM; a changed FILE is read again", outside: true},
			kind: filePath, into: func(s *Settings) *Value[string] { return &s.WebhookCA }},
	}
}
