package doctor

import (
	"cmp"
	"slices"

	"xdspub/diag"
)

// Codes returns the codes of the findings of this package, sorted by name.
func Codes() []diag.Code {
	list := []diag.Code{codeNotExamined}
	for _, c := range checks {
		if c.code.Doc != "" { // the code of another package
			list = append(list, c.code)
		}
	}
	slices.SortFunc(list, func(a, b diag.Code) int { return cmp.Compare(a.Name, b.Name) })
	return diag.InFamily("machine", list)
}

var (
	codeNotExamined = diag.Code{Name: "not-examined", Severity: diag.Info, Doc: `xdspub doctor could not examine something.

The message has the reason. Mostly doctor runs as a user who may not see the process of Envoy, or in
another container. Run doctor as root, or give --envoy-admin or --envoy-user.`}

	codeDamagedOutput = diag.Code{Name: "damaged-output", Doc: `xdspub can't read the output directory, or its record of the published files.

xdspub publishes nothing into such a directory. Envoy still reads the published files. The message has
the reason and the remedy.`}

	codeInotifyInstances = diag.Code{Name: "inotify-instances", Doc: `The user of Envoy has too few inotify instances.

Each file that Envoy subscribes to takes an inotify instance. Linux gives the processes of a user
fs.inotify.max_user_instances, 128 by default, and an Envoy that gets none aborts. During a hot
restart, two Envoys take instances: if only the restart lacks instances, the finding is a warning.
Raise the sysctl, or run Envoy as another user than other programs.`}

	codeInotifyWatches = diag.Code{Name: "inotify-watches", Severity: diag.Warning, Doc: `A user has too few inotify watches.

xdspub watch takes a watch for each folder of the source tree, and Envoy takes a watch for each file.
Without watches, xdspub polls the source tree, and Envoy rejects clusters and listeners. Raise the
sysctl fs.inotify.max_user_watches.`}

	codeDescriptors = diag.Code{Name: "descriptor-limit", Severity: diag.Warning, Doc: `A process has opened most of its file descriptors.

Each connection and each watched file takes a descriptor. At the limit, Envoy accepts no connection,
and xdspub publishes nothing. Raise LimitNOFILE= in the unit of systemd, or ulimit -n.`}

	codeNoEvents = diag.Code{Name: "no-file-events", Severity: diag.Warning, Doc: `The file system does not report the changes of other machines or containers.

Envoy and xdspub watch wait for events of the file system. NFS, SMB, 9p and FUSE report only changes of
the same machine, through the same mount. Containers don't share the layer that overlayfs gives each
container. Use a local volume, or poll: --poll for the source tree, --poll-interval for the output
directory.`}

	codeUnwatchedSource = diag.Code{Name: "unwatched-source", Severity: diag.Warning, Doc: `The running watch gets no events about a part of the source tree.

Only a rescan finds changes in that part. The event watch-partial of the log names the folder and the
reason.`}

	codeSplitOutput = diag.Code{Name: "split-output", Doc: `A part of the output directory is on another file system, or is a mount.

xdspub publishes by renaming a file out of OUT/.xdspub/stage, and no rename crosses file systems or
mounts: xdspub refuses each change of that part. Mount the whole output directory instead.`}

	codeOutputSpace = diag.Code{Name: "output-space", Doc: `The file system of the output directory is full, nearly full or read-only.

A change writes each new file beside the old file, and keeps the old bytes for a rollback. If the space
does not suffice for a change of all files, the finding is a warning.`}

	codeEnvoyAccess = diag.Code{Name: "envoy-access", Doc: `The user of Envoy can't read published files.

Envoy must be able to read each file, to read and enter the folder of the file, and to enter each
folder above. Otherwise Envoy rejects the cluster or listener. Files with secrets belong to the group
of the output directory, or of --group: add Envoy's user to that group. doctor compares the modes of
the files with the user of the process, or with --envoy-user.`}

	codeReplacedDirectory = diag.Code{Name: "replaced-directory", Doc: `Envoy watches another directory than the output directory.

inotify watches a directory, not a path. If somebody replaces the directory, or mounts over it, Envoy
keeps watching the old directory, and silently misses each update. Restart Envoy, and never replace
folders of the output directory. In a container, mount the output directory at --envoy-path.`}

	codeEditedFile = diag.Code{Name: "edited-file", Doc: `Somebody has edited, replaced or removed a published file.

Envoy does not notice an edit in place, and reads the edited file at its next start. xdspub has not
checked the edit. Edit the source tree instead, and publish the files again.`}

	codeEnvoySilent = diag.Code{Name: "envoy-silent", Doc: `An Envoy does not answer.

The Envoy is down or hangs, or another program listens at the address. doctor knows nothing about this
Envoy, and a publish does not wait for it.`}

	codeAdminTooClosed = diag.Code{Name: "admin-too-closed", Doc: `The admin interface of Envoy refuses a request of xdspub.

xdspub asks /ready, /server_info, /stats and /config_dump whether Envoy has applied a file. The field
admin.allow_paths of the bootstrap (since Envoy 1.37) does not list a path. xdspub bootstrap envoy
--admin-paths needed lists exactly the needed paths.`}

	codeAdminTooOpen = diag.Code{Name: "admin-too-open", Severity: diag.Warning, Doc: `Other machines can reach the whole admin interface of Envoy.

Everybody who reaches the interface can stop Envoy, change its runtime and read its configuration. Let
Envoy listen on 127.0.0.1 or on a Unix socket, or limit the interface by xdspub bootstrap envoy
--admin-paths needed.`}

	codeHiddenStatistics = diag.Code{Name: "hidden-statistics", Doc: `Envoy hides statistics that xdspub needs.

By these statistics, xdspub learns whether Envoy has applied or rejected a file. The stats_matcher in
stats_config of the bootstrap excludes some, so a publish with this --envoy-admin fails. The message
lists the statistics to include.`}

	codeOtherFiles = diag.Code{Name: "other-files", Doc: `An Envoy does not run the published files.

Its bootstrap names another directory, or Envoy has rejected or not read a published file. xdspub
status shows each file.`}

	codeOlderEnvoy = diag.Code{Name: "older-envoy", Doc: `A published resource has a field that is newer than a running Envoy.

This Envoy ignores the field: the setting has no effect, and only server.dynamic_unknown_fields counts
it. Set --envoy-version to the oldest Envoy, and xdspub refuses such fields.`}

	codeClocks = diag.Code{Name: "clocks-differ", Severity: diag.Warning, Doc: `Two clocks differ.

Envoy judges certificates by its own clock. xdspub removes retired clusters by the times in its record:
after somebody has set a clock back, these clusters stay longer.`}

	codeLeftovers = diag.Code{Name: "leftovers", Severity: diag.Warning, Doc: `A killed process has left files, or an unfinished change.

The next publish removes the files, and continues the change. Until then, Envoy can run with the
published files, old and new. xdspub doctor --fix removes the files.`}

	codeUnusedFolders = diag.Code{Name: "unused-folders", Severity: diag.Info, Doc: `The output directory has folders of resources that are no longer published.

xdspub keeps these folders, because an Envoy that watches a folder would miss a new folder of the same
name. Empty folders cost only inodes. While no Envoy watches, xdspub doctor --prune removes them.`}
)
