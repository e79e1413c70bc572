// Package browser has the tests in a real Chromium: of the page of watch and serve, and of the image of xdspub graph.
// It is a module of its own, so that the driver of the browser is no dependency of the program.
package browser
