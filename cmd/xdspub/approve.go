package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/watch"
	"xdspub/watch/control"
)

func approveCommand() *cli.Command {
	return &cli.Command{
		Name:      "approve",
		Usage:     "publish a change that the guards have refused, once",
		ArgsUsage: "ID",
		Description: `The guards refuse a change that removes too much, and name its ID, as status does. approve lets
exactly this change through. A running watch or server publishes the change at once, and approve
waits for the outcome. Without a watch, the next render or watch publishes. An approval is void
once the source tree removes more or less, or something else. --withdraw withdraws an unused
approval, such as during a pause.

Examples:
  xdspub approve --out /var/lib/xds --reason "shop moves out" 3fa94c1b07d2e5a6
  xdspub approve --out /var/lib/xds --withdraw 3fa94c1b07d2e5a6

Exit status: 0 approved, and published if a watch runs, or withdrawn; 1 no such change waits, or
the change is not published; 2 wrong usage; 3 could not run.`,
		Flags: options(settings.Approve()),
		Action: action(func(c *call) error {
			if c.NArg() != 1 {
				return usagef("approve takes one argument: write the ID of the change, which status shows, and --out DIR for the output directory")
			}
			if err := c.Check(settings.Approve()...); err != nil {
				return err
			}
			asked := control.Approve{By: operatorOf(), Reason: c.Reason.Value, Change: c.Args().First(), Withdraw: c.Withdraw.Value}
			name := "approve a change"
			if asked.Withdraw {
				name = "withdraw the approval of a change"
				if !c.Reason.Given() {
					asked.Reason = "approve --withdraw"
				}
			}
			return decide(c, decision{
				name: name,
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskApprove(ctx, out, asked)
				},
				do: func(out string) (control.Result, error) { return watch.Approve(out, asked) },
			})
		}),
	}
}

// writeApproval writes a line for the change that waits for an approval, and a line for an unused approval.
func writeApproval(w io.Writer, out string, guarded *control.Guarded, approved *control.Shown) {
	if guarded != nil {
		fmt.Fprintf(w, "guarded: %s; xdspub approve --out %s %s lets the change through\n", guarded, out, guarded.Change)
	}
	if approved != nil {
		fmt.Fprintf(w, "approved: %s; xdspub approve --withdraw --out %s %s withdraws the approval\n", approved, out, approved.Change)
	}
}
