package telemetry

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filelogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	filesinkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_check/event_sinks/file/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var logFilePath = &validate.Rule{
	Code:     "log-file-path",
	Severity: diag.Error,
	Doc: `Envoy can't open a log file at this path.

Envoy opens the files of access logs and health check events when it loads the resource, creates
missing files, and rejects the resource if it can't ("unable to open file '/tmp': Is a directory").
It does not create directories. This rule reports paths that can't work on any machine: a path that
ends with a slash, a directory that every system has, a path below /dev/null, a component of more
than 255 bytes, or more than 4,095 bytes in total. Envoy does not expand ~ and does not support
file:// URLs. xdspub can't know further directories of Envoy's machine.`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.HealthCheck",
		"envoy.extensions.access_loggers.file.v3.FileAccessLog",
		"envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		var field, file string
		switch m := n.Message.(type) {
		case *corev3.HealthCheck:
			field, file = "event_log_path", m.GetEventLogPath()
		case *filelogv3.FileAccessLog:
			field, file = "path", m.GetPath()
		case *filesinkv3.HealthCheckEventFileSink:
			field, file = "event_log_path", m.GetEventLogPath()
		}
		if file == "" {
			return // field-constraint reports a missing path
		}
		if message := noFile(file); message != "" {
			p.Report(validate.Finding{
				Path: n.Path().Field(field), Message: fmt.Sprintf("the log file path %.60q %s", file, message),
				Help: "write the path of a file in an existing directory, such as /var/log/envoy/access.log, or /dev/stdout",
			})
		}
	},
}

// directories lists directories that every system with Envoy has.
var directories = []string{
	"/", "/bin", "/boot", "/dev", "/dev/fd", "/dev/pts", "/dev/shm", "/etc", "/home", "/lib", "/media", "/mnt", "/opt", "/proc", "/proc/self",
	"/proc/self/fd", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/share",
	"/var", "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp",
}

// noFile returns the reason why a path can't be that of a file, or "".
func noFile(file string) string {
	parts := strings.Split(file, "/")
	last := parts[len(parts)-1]
	switch {
	case last == "" || last == "." || last == ".." || slices.Contains(directories, path.Clean(file)):
		return "is a directory"
	case strings.HasPrefix(file, "~/"):
		return "begins with ~, which Envoy does not expand"
	case strings.HasPrefix(file, "file://"):
		return "is a URL, not a path"
	case slices.ContainsFunc([]string{"/dev/null/", "/dev/stderr/", "/dev/stdout/"}, func(device string) bool { return strings.HasPrefix(file, device) }):
		return "is below a device, which is not a directory"
	case len(file) >= 4096 || slices.ContainsFunc(parts, func(part string) bool { return len(part) > 255 }):
		return "is too long for the file system"
	}
	return ""
}
