package settings

// The groups of rows in the help of a command.
const (
	GroupResources = "Where Envoy gets resources"
	GroupNode      = "This Envoy"
	GroupServers   = "The xDS servers"
	GroupProgram   = "The gRPC program"
	GroupNames     = "Names of listeners"
	GroupSource    = "Source tree"
	GroupUpstream  = "Control plane as source"
	GroupRules     = "Rules"
	GroupPublish   = "Publishing"
	GroupServe     = "Serving"
	GroupAcks      = "Acknowledgement by Envoy"
	GroupWatch     = "Watching"
	GroupHooks     = "Hooks"
	GroupStore     = "Fleet"
	GroupRun       = "This run"
	GroupPrint     = "What is printed"
)

// Groups returns the groups in the order in which the help shows them. The first one has no title.
func Groups() []string {
	return []string{
		"", GroupResources, GroupNode, GroupServers, GroupProgram, GroupNames, GroupSource, GroupUpstream, GroupRules, GroupServe,
		GroupPublish, GroupAcks, GroupWatch, GroupHooks, GroupStore, GroupRun, GroupPrint,
	}
}
