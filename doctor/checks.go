package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
)

// inspection is a row of the table checks.
type inspection struct {
	code diag.Code
	at   string // what the check looks at
	// find returns the findings. A finding without a code gets the code of the check.
	find func(context.Context, *examination) diag.List
}

// checks is the table of all checks.
var checks = []inspection{
	{codeDamagedOutput, "the record of the output directory", damagedOutput},
	{codeInotifyInstances, "the inotify instances of the user of Envoy", inotifyInstances},
	{codeInotifyWatches, "the inotify watches of the users of Envoy and xdspub", inotifyWatches},
	{codeDescriptors, "the open descriptors of Envoy and xdspub", descriptors},
	{codeNoEvents, "the file systems of the output directory and of the source tree", noEvents},
	{codeUnwatchedSource, "how the watch learns of changes", unwatchedSource},
	{codeSplitOutput, "mounts inside the output directory", splitOutput},
	{codeOutputSpace, "the space on the file system of the output directory", outputSpace},
	{codeEnvoyAccess, "what the user of Envoy may read", envoyAccess},
	{codeReplacedDirectory, "the directories that Envoy watches", replacedDirectory},
	{codeEditedFile, "the published files", editedFile},
	{codeEnvoySilent, "the admin interface of Envoy", envoySilent},
	{codeAdminTooClosed, "what the admin interface of Envoy refuses", adminTooClosed},
	{codeAdminTooOpen, "who can reach the admin interface of Envoy", adminTooOpen},
	{codeHiddenStatistics, "the statistics of Envoy", hiddenStatistics},
	{codeOtherFiles, "the files that Envoy runs", otherFiles},
	{codeOlderEnvoy, "the version of Envoy", olderEnvoy},
	{codeClocks, "the clocks of this machine, of Envoy and of the file system", clocks},
	{codeLeftovers, "files of killed processes", leftovers},
	{codeUnusedFolders, "folders of resources that are no longer published", unusedFolders},
	{code: diag.Code{Name: "expired-certificate"}, at: "the published certificates", find: certificates},
}

// run runs all checks. incomplete is the number of checks that could not look everywhere.
func run(ctx context.Context, e *examination) (list diag.List, incomplete int) {
	var unknown diag.List
	at := make(map[string][]string) // what checks could not examine, by the reason
	for _, c := range checks {
		found := c.find(ctx, e)
		if slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == codeNotExamined.Name }) {
			incomplete++
		}
		for _, d := range found {
			switch {
			case d.Code == codeNotExamined.Name && at[d.Message] == nil:
				unknown = append(unknown, d)
				fallthrough
			case d.Code == codeNotExamined.Name:
				at[d.Message] = append(at[d.Message], c.at)
				continue
			case d.Code == "":
				d.Code = c.code.Name
			}
			list = append(list, d)
		}
	}
	for _, d := range unknown {
		d.Message = fmt.Sprintf("not examined: %s, because %s", strings.Join(at[d.Message], "; "), d.Message)
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b diag.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
	return list, incomplete
}

// fault returns a finding. file may be empty.
func fault(severity diag.Severity, file, message, help string) diag.Diagnostic {
	return diag.Diagnostic{Severity: severity, Position: diag.Position{File: file}, Message: message, Help: help}
}

// notExamined returns the finding that a check could not look, with the reason.
func notExamined(reason, help string) diag.Diagnostic {
	d := fault(codeNotExamined.Severity, "", reason, help)
	d.Code = codeNotExamined.Name
	return d
}

// mostNames is the largest number of files or folders that a message lists.
const mostNames = 5
