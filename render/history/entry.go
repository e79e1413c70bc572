package history

import (
	"strings"
	"time"

	"xdspub/render/publish"
	"xdspub/xds"
)

// Entry describes a snapshot of the history: who published it, when and why. An Entry never changes; its Notes
// have later facts.
type Entry struct {
	// ID is a hash of the Entry, as 12 hexadecimal digits. Record sets it.
	ID string `json:"-"`
	// Time is when the first file moved, or when clients got the snapshot.
	Time time.Time `json:"time"`
	// Snapshot is the id of the published snapshot, as in the manifest and in the log.
	Snapshot string `json:"snapshot"`
	// Content is the id of the stored resources (xds.Snapshot.ID). It differs from Snapshot if a server has variants.
	// Record sets it.
	Content string `json:"content"`
	// Tree is the hash of the stored resources. Entries with an equal Tree have equal resources. Record sets it.
	Tree string `json:"tree"`

	// Revision is the git commit of the source tree, with "+dirty" if the tree differs from the commit; empty without
	// git.
	Revision string `json:"revision,omitempty"`
	// Author and Subject are those of the commit.
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`

	// Command is the command that published: render, watch, serve, rollback, or undo at the end of --confirm-within.
	Command string `json:"command"`
	// By is the user who called the command, as user@host.
	By string `json:"by,omitempty"`
	// Reason is the text of --reason.
	Reason string `json:"reason,omitempty"`
	// Of is the id of the Entry whose resources a rollback or an undo has published; empty for a publish of a source
	// tree.
	Of string `json:"of,omitempty"`

	// Part means that the resources are a part of a refused source tree; nil for a whole source tree.
	Part *publish.Part `json:"part,omitempty"`

	// Layout is the layout of the output directory, Format the format of the files, and EnvoyPath the path of the
	// directory for Envoy. Without an output directory, all three are zero.
	Layout    int    `json:"layout,omitempty"`
	Format    string `json:"format,omitempty"`
	EnvoyPath string `json:"envoy_path,omitempty"`

	// Resources counts the resources by type, as in "CDS". Record sets it.
	Resources map[string]int `json:"resources,omitempty"`
	// Changes is the difference from the entry before; nil for the first entry. Record sets it.
	Changes *Changes `json:"changes,omitempty"`
	// Outcome is the outcome at the time of Record. Notes have later outcomes.
	Outcome Outcome `json:"outcome"`
}

// Dirty reports whether the source tree differed from its commit.
func (e Entry) Dirty() bool { return strings.HasSuffix(e.Revision, "+dirty") }

// Changes counts the resources that differ from the entry before. The lists name the first MaxNames of each kind,
// such as CDS/web.
type Changes struct {
	Added        int      `json:"added"`
	Changed      int      `json:"changed"`
	Removed      int      `json:"removed"`
	NamesAdded   []string `json:"names_added,omitempty"`
	NamesChanged []string `json:"names_changed,omitempty"`
	NamesRemoved []string `json:"names_removed,omitempty"`
}

// MaxNames is the number of names in each list of Changes.
const MaxNames = 20

// Outcome is what became of a published snapshot.
type Outcome string

const (
	// Acknowledged: the Envoys and clients that were asked have acknowledged the snapshot.
	Acknowledged Outcome = "acknowledged"
	// Unconfirmed: some Envoys or clients have not acknowledged the snapshot in time, or no Envoy was asked.
	Unconfirmed Outcome = "unconfirmed"
	// Rejected: an Envoy or clients rejected the snapshot, and the snapshot before was restored.
	Rejected Outcome = "rejected"
	// RejectedKept: an Envoy or clients rejected the first snapshot, which stays published.
	RejectedKept Outcome = "rejected, kept"
	// RolledBack: somebody has replaced the snapshot by an earlier one.
	RolledBack Outcome = "rolled back"
	// Confirmed: an operator has confirmed the snapshot (--confirm-within).
	Confirmed Outcome = "confirmed"
	// Undone: nobody has confirmed the snapshot in time, or an operator has cancelled it; the snapshot before was
	// restored.
	Undone Outcome = "undone"
)

// WentOut reports whether a snapshot with the outcome stayed published after its change.
func (o Outcome) WentOut() bool { return o != Rejected }

// Notes have later facts about an Entry.
type Notes struct {
	// Outcome replaces Entry.Outcome, unless it is empty.
	Outcome Outcome `json:"outcome,omitempty"`
	// Since is when the Outcome was noted. By is the operator who caused the Outcome; empty without
	// an operator.
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"`
	// Revisions are further commits with the same resources, the latest last.
	Revisions []string `json:"revisions,omitempty"`
}

// Item is an Entry with its Notes.
type Item struct {
	Entry
	Notes Notes
	// Fault is nil, or says what is wrong with the entry on disk. Load would fail.
	Fault error
}

// Outcome returns the latest known outcome.
func (i Item) Outcome() Outcome {
	if i.Notes.Outcome != "" {
		return i.Notes.Outcome
	}
	return i.Entry.Outcome
}

// describe completes the parts of an Entry that follow from its resources.
func (e *Entry) describe(s *xds.Snapshot) {
	e.Content, e.Resources = s.ID(), make(map[string]int)
	for _, t := range xds.Types {
		if n := len(s.Of(t)); n > 0 {
			e.Resources[t.API] = n
		}
	}
}
