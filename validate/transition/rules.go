package transition

// Rules lists all rules, sorted by code. A new rule needs an entry here, a file rule_<code>.go, and examples in
// testdata/<code>.txtar.
var Rules = []*Rule{
	addressSwap,
	allEndpointsRemoved,
	allListenersRemoved,
	bindToPortChanged,
	extensionTypeChanged,
	ledsWeightsChanged,
	manyRemoved,
	portInUse,
	reusePortChanged,
	secretKindChanged,
	sharedSettingsChanged,
	socketKept,
}
