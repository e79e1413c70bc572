// Package browser has the tests of the page of watch and serve in a real Chromium: a module of its own, so that the
// driver of the browser is no dependency of the program.
package browser
