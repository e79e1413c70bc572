package initial_test

import (
	"fmt"
	"log"

	"xdspub/setup/initial"
)

// What a new directory holds.
func ExampleFiles() {
	files, err := initial.Files()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Path)
	}
	// Output:
	// config/xdspub.yaml
	// config/listeners.yaml
	// config/routes.yaml
	// config/clusters.yaml
	// config/endpoints.yaml
	// grpc/xdspub.yaml
	// grpc/app.yaml
	// bootstrap/envoy-files.yaml
	// bootstrap/envoy-serve.yaml
	// bootstrap/grpc.json
	// systemd/xdspub.service
	// systemd/envoy.service
	// compose.yaml
	// kustomization.yaml
	// kubernetes/deployment.yaml
	// .github/workflows/xdspub.yaml
}
