package envoy

// Refusal is what an Envoy says of something that it refused.
type Refusal struct {
	API      string // as in Subscription
	Resource string // "" where Envoy does not say
	File     string // the path, as Envoy has it; "" where it does not say
	// Message is Envoy's, "" where it says that something is wrong and not what.
	Message string
}
