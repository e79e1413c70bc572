// Package schemas holds files that xdspub writes for other programs to the libraries of those programs: reports to
// SARIF and JUnit, what xdspub init writes to Compose and Kubernetes. It is a module of its own, so that no other
// module needs the libraries, and reads the files where the tests of report and setup/initial hold xdspub to them.
package schemas
