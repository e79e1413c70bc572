package validate

// Rules is every rule, sorted by code. A new rule is a line here, its file
// rule_<code>.go and its examples testdata/<code>.txtar.
var Rules = []*Rule{
	badCELExpression,
	badFormatString,
	badRegex,
	certificateFile,
	duplicateAddress,
	duplicateDomain,
	duplicateResource,
	durationRange,
	extensionConfigType,
	fieldConstraint,
	listenerFilterChains,
	logFilePath,
	malformedAddress,
	nameMissing,
	notANumber,
	orphanEndpoints,
	shadowedByBootstrap,
	terminalFilter,
	unknownType,
	unresolvedReference,
	unsupportedConfigSource,
	unusableAccessLog,
	weightSum,
}
