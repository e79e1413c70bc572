package rest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"xdspub/xds"
)

// FuzzRequest checks that parse reads the same DiscoveryRequest as protojson, and doesn't panic if protojson
// returns an error.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{}`, ` null `, `[]`, `{"node": null, "resource_names": null, "error_detail": null, "version_info": null}`,
		`{"version_info": "v\u00e4", "resource_names": ["b", "a", "b", "*"], "type_url": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}`,
		`{"versionInfo": "v", "resourceNames": [], "typeUrl": "", "responseNonce": "n", "newer": {"a": [1, {}]}}`,
		`{"node": {"id": "a", "user_agent_name": "envoy", "metadata": {"a": [null, true]}, "extensions": [{"name": "x"}]}}`,
		`{"node": {"userAgentName": "envoy", "locality": {"zone": "z"}}, "errorDetail": {"code": 3, "message": "no", "details": []}}`,
		`{"node": {"cluster": "c", "userAgentName": "envoy", "user_agent_build_version": {"version": {"major_number": 1, "minorNumber": "40"}, "metadata": {"a": 1}}}}`,
		`{"node": {"user_agent_version": "2", "user_agent_build_version": null}}`,
		`{"version_info": 1}`, `{"node": {"id": {}}}`, `{"resource_names": "a"}`, `{"a": `, `{}{}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q := newRequest(xds.Cluster)
		err := q.parse(bytes.NewReader(body))
		var want discoveryv3.DiscoveryRequest
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, &want) != nil {
			return
		}
		if url := want.GetTypeUrl(); url != "" && url != xds.Cluster.URL() {
			if err == nil {
				t.Errorf("type %q is taken", url)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		q.finish("")
		names := make(map[string]bool)
		for _, name := range want.GetResourceNames() {
			names[name] = true
		}
		if q.Version != want.GetVersionInfo() || q.Node.GetId() != want.GetNode().GetId() || q.Envoy != (want.GetNode().GetUserAgentName() == "envoy") ||
			q.Node.GetCluster() != want.GetNode().GetCluster() || q.Node.GetUserAgentVersion() != want.GetNode().GetUserAgentVersion() ||
			q.Node.GetUserAgentBuildVersion().GetVersion().GetMinorNumber() != want.GetNode().GetUserAgentBuildVersion().GetVersion().GetMinorNumber() ||
			q.Refused != (want.GetErrorDetail() != nil) || q.Reason != want.GetErrorDetail().GetMessage() ||
			!slices.Equal(q.Names, slices.Sorted(maps.Keys(names))) || q.All != (len(names) == 0 || names["*"]) {
			t.Errorf("%q is read as %+v", body, q)
		}
	})
}
