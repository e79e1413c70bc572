// Package browser tests the page of watch and serve, and the image of xdspub graph, in a real Chromium. The package is
// a module, so that the program does not depend on the driver of the browser.
package browser
