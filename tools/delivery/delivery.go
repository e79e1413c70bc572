// Package delivery holds the tests of what is delivered beside the program, and of the recipes that run it in
// the pipelines of others: scripts/dist, the hooks for pre-commit, the action, docs/ci.md, Containerfile.
package delivery
