// Package schemas checks files that xdspub writes for other programs by the libraries of these programs: reports by
// libraries of SARIF and JUnit, the files of xdspub init by those of Compose and Kubernetes, and examples/monitoring by
// those of the Prometheus Operator and Grafana. The package is a separate module, so that the module of xdspub does not
// need the libraries. It reads the golden files of the tests of report and setup/initial, and the example.
package schemas
