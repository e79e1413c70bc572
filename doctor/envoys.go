package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/watch/status"
)

// wrong returns the error of an Envoy's answers: about itself, or about the published files.
func (s *seen) wrong() error {
	if s.err != nil || s.report == nil {
		return s.err
	}
	return s.report.Err
}

// envoySilent reports Envoys that do not answer, and addresses where no Envoy answers.
func envoySilent(_ context.Context, e *examination) (list diag.List) {
	if len(e.envoys) == 0 && e.state != nil {
		return diag.List{notExamined("no Envoy was asked", "give --envoy-admin URL")}
	}
	for _, s := range e.envoys {
		err := s.wrong()
		_, closed := errors.AsType[*envoy.ForbiddenError](err)
		_, hidden := errors.AsType[*envoy.StatsExcludedError](err)
		_, other := errors.AsType[*envoy.NotSubscribedError](err)
		if err == nil || closed || hidden || other {
			continue
		}
		help := "give the address of admin in Envoy's bootstrap"
		if envoy.Unreachable(err) {
			help = "start Envoy, or try: " + curl(s.admin)
		}
		list = append(list, fault(diag.Error, "", diag.ClipLine(err.Error(), diag.MaxText), help))
	}
	return list
}

// curl returns a shell command that asks an Envoy for /ready.
func curl(admin *envoy.Admin) string {
	if network, path := admin.Address(); network == "unix" {
		return fmt.Sprintf("curl --unix-socket %s http://envoy/ready", path)
	}
	return fmt.Sprintf("curl %s/ready", admin)
}

// adminTooClosed reports admin interfaces that refuse a path that xdspub needs.
func adminTooClosed(_ context.Context, e *examination) (list diag.List) {
	for _, s := range e.envoys {
		if refused, ok := errors.AsType[*envoy.ForbiddenError](s.wrong()); ok {
			list = append(list, fault(diag.Error, "", refused.Error(), "xdspub bootstrap envoy --admin-paths needed writes what xdspub asks for"))
		}
	}
	return list
}

// adminTooOpen reports admin interfaces that other machines can reach, and that no allow_paths limits.
func adminTooOpen(_ context.Context, e *examination) (list diag.List) {
	for _, s := range e.envoys {
		if s.about == nil || s.about.AdminLimited {
			continue
		}
		address, err := netip.ParseAddr(s.about.Admin)
		if err != nil || address.IsLoopback() { // a Unix socket
			continue
		}
		list = append(list, fault(codeAdminTooOpen.Severity, "",
			fmt.Sprintf("the Envoy %s listens on %s with its whole admin interface: everybody who reaches it can stop Envoy", s.admin, s.about.Admin),
			"let it listen on 127.0.0.1 or on unix:PATH, or write the bootstrap by xdspub bootstrap envoy --admin-paths needed"))
	}
	return list
}

// hiddenStatistics reports Envoys whose bootstrap hides statistics.
func hiddenStatistics(_ context.Context, e *examination) (list diag.List) {
	for _, s := range e.envoys {
		if hidden, ok := errors.AsType[*envoy.StatsExcludedError](s.wrong()); ok {
			list = append(list, fault(diag.Error, "", hidden.Error(), "change stats_config.stats_matcher of its bootstrap, and restart Envoy"))
		}
	}
	return list
}

// otherFiles reports Envoys that do not run the published files.
func otherFiles(_ context.Context, e *examination) (list diag.List) {
	for _, s := range e.envoys {
		if other, ok := errors.AsType[*envoy.NotSubscribedError](s.wrong()); ok {
			list = append(list, fault(diag.Error, "", other.Error(), "start this Envoy with the bootstrap of xdspub bootstrap envoy --out DIR"))
			continue
		}
		if s.wrong() != nil || s.report == nil || e.status.Change != nil {
			continue
		}
		for _, is := range []status.Sync{status.Rejected, status.Stale} {
			var files []string
			for _, row := range s.report.Subscriptions {
				if row.Sync == is {
					files = append(files, row.File)
				}
			}
			if len(files) > 0 {
				number := diag.Count(len(files), "published file")
				message := fmt.Sprintf("the Envoy %s runs another version of %s, %s: %s", s.admin, number, is, diag.Few(files, mostNames))
				list = append(list, fault(diag.Error, "", message, fmt.Sprintf("read the reason: xdspub status --out %s --envoy-admin %s", e.Status.Out, s.admin)))
			}
		}
	}
	return list
}

// olderEnvoy reports published fields that are newer than a running Envoy.
func olderEnvoy(ctx context.Context, e *examination) (list diag.List) {
	if e.state == nil {
		return nil
	}
	var judged []string
	for _, s := range e.envoys {
		if s.about == nil || slices.Contains(judged, s.about.Version) {
			continue
		}
		judged = append(judged, s.about.Version)
		list = append(list, e.newerThan(ctx, s)...)
	}
	return list
}

// newerThan reports published fields that are newer than the version of an Envoy.
func (e *examination) newerThan(ctx context.Context, s *seen) diag.List {
	releases := check.EnvoyReleases()
	of, _, known := check.EnvoyOf([]string{s.about.Version})
	if !known {
		if !older(s.about.Version, releases[0]) {
			return nil // it knows all fields that xdspub knows
		}
		message := fmt.Sprintf("the Envoy %s is version %s, and xdspub knows Envoy since %s", s.admin, s.about.Version, releases[0])
		return diag.List{fault(diag.Warning, "", message, "use a supported version of Envoy")}
	}
	snapshot, err := status.Snapshot(e.Status)
	if err != nil {
		return diag.List{notExamined(diag.ClipLine(err.Error(), diag.MaxText), "")}
	}
	newer := check.Rules{Envoy: of.With(e.Status.Registry)}.Newer(ctx, snapshot)
	if len(newer) == 0 {
		return nil
	}
	var words []string
	for _, d := range newer {
		words = append(words, fmt.Sprintf("%q: %s", d.Resource.Name, d.Message))
	}
	return diag.List{fault(diag.Error, "",
		fmt.Sprintf("the Envoy %s ignores %s: %s", s.admin, diag.Count(len(words), "published setting"), diag.Few(words, mostNames)),
		fmt.Sprintf("give --envoy-version %s to xdspub, which then refuses such a setting; or upgrade this Envoy", minor(s.about.Version)))}
}

// minor returns a version without its patch number.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// older reports whether a version is older than a release. An unknown version is not.
func older(version, release string) bool {
	var major, number, from, least int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &number)
	_, wrong := fmt.Sscanf(release, "%d.%d", &from, &least)
	return err == nil && wrong == nil && (major < from || major == from && number < least)
}

// tolerance is the largest difference of two clocks without a finding. Times have whole seconds, and Envoy dates its
// start after it has read its bootstrap.
const tolerance = 30 * time.Second

// clocks compares the clock of this machine with those of the Envoys and of the file system.
func clocks(_ context.Context, e *examination) (list diag.List) {
	for _, s := range e.envoys {
		if s.about == nil || s.about.Started.IsZero() || s.about.StartedThere.IsZero() {
			continue
		}
		if by := s.about.StartedThere.Sub(s.about.Started); by.Abs() > tolerance {
			list = append(list, fault(codeClocks.Severity, "",
				fmt.Sprintf("the clock of the Envoy %s differs from the clock of this machine by %s", s.admin, by.Abs().Round(time.Second)),
				"synchronise both clocks: Envoy judges certificates by its own"))
		}
	}
	if e.state == nil {
		return list
	}
	latest, what := e.state.Manifest.Published, "the last publish"
	for _, g := range e.state.Manifest.Retired {
		if g.Since.After(latest) {
			latest, what = g.Since, "a retired resource"
		}
	}
	if at := e.newestFile(); at.After(latest) {
		latest, what = at, "a published file"
	}
	if by := latest.Sub(e.now); by > tolerance {
		list = append(list, fault(codeClocks.Severity, e.Status.Out,
			fmt.Sprintf("%s is from the future, by %s: a clock was set back, or the clock of the file system is ahead", what, by.Round(time.Second)),
			"synchronise the clocks; the trim of retired clusters waits until then"))
	}
	return list
}
