package transition

// Rules is every rule, sorted by code. A new rule is a line here, its file
// rule_<code>.go and its examples testdata/<code>.txtar.
var Rules = []*Rule{
	addressSwap,
	bindToPortChanged,
	extensionTypeChanged,
	ledsWeightsChanged,
	portInUse,
	reusePortChanged,
	secretKindChanged,
	sharedSettingsChanged,
	socketKept,
}
