package grpcboot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/xds"

	"xdspub/setup/grpcboot"
)

// sentence is a sentence of gRPC's description of the bootstrap, with a bootstrap that tests it.
type sentence struct {
	says      string
	bootstrap string
	// finds has the findings of Parse, one on each line, without place and help. It is "" without findings.
	finds string
	// byGo is the reaction of grpc-go: "takes", "crashes", or a part of its error. differs tells how clients differ
	// from the description.
	byGo string
	// byCore is the reaction of C-core, by its client for Python. "" means the same as byGo. "not asked" means that
	// the reaction depends on the machine.
	byCore  string
	differs string
	// newer means that clients read the field only with the environment variables experimental.
	newer bool
}

const (
	oneServer = `"server_uri": "unix:/nonexistent", "channel_creds": [{"type": "insecure"}]`
	atTop     = "failed during bootstrap"
)

// with returns a bootstrap with a server and further fields.
func with(rest string) string {
	return `{"xds_servers": [{` + oneServer + `}], ` + rest + `}`
}

func server(fields string) string { return `{"xds_servers": [{` + fields + `}]}` }

func creds(list string) string {
	return server(`"server_uri": "unix:/nonexistent", "channel_creds": [` + list + `]`)
}

func tlsWith(fields string) string { return creds(`{"type": "tls", "config": {` + fields + `}}`) }

func features(list string) string { return server(oneServer + `, "server_features": ` + list) }

func provider(fields string) string {
	return with(`"certificate_providers": {"own": {` + fields + `}}`)
}

// calls returns a bootstrap whose server has a list of call credentials.
func calls(list string) string {
	return server(`"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "tls"}], "call_creds": [` + list + `]`)
}

// experimental are environment variables with which clients read fields of newer proposals.
var experimental = []string{"GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true", "GRPC_EXPERIMENTAL_XDS_EXT_PROC_ON_CLIENT=true"}

func watcher(fields string) string {
	return provider(`"plugin_name": "file_watcher", "config": {` + fields + `}`)
}

func authority(name, fields, rest string) string {
	return with(fmt.Sprintf(`"authorities": {%q: {%s}}%s`, name, fields, rest))
}

func authorityTemplate(name, template string) string {
	return authority(name, fmt.Sprintf(`"client_listener_resource_name_template": %q`, template), "")
}

func clientTemplate(template string) string {
	return fmt.Sprintf(`"client_default_listener_resource_name_template": %q`, template)
}

func serverTemplate(template string) string {
	return fmt.Sprintf(`"server_listener_resource_name_template": %q`, template)
}

const (
	coreParse = "JSON parsing failed"
	notObject = "is not an object"
	noName    = "Unable to parse resource name"
	pair      = "both specified or not specified"
	corePair  = "must be both set or both unset"
	begins    = `field must begin with "xdstp://b/"`
)

// sentences are in the order of the description of the format.
var sentences = []sentence{
	{says: "it is a JSON string", bootstrap: with(`"node": {"id": "a"}`), byGo: "takes"},
	{says: "half of one is none", bootstrap: `{"xds_servers": [{`, finds: `error: this { is not closed [invalid-syntax]`, byGo: "unexpected end of JSON input", byCore: coreParse},
	{says: "nor is one with comments", bootstrap: "{\n// a\n" + with(`"node": {}`)[1:], finds: `error: JSON has no comments [invalid-syntax]`, byGo: "invalid character '/'", byCore: coreParse},
	{says: "nor with more behind it", bootstrap: with(`"node": {}`) + " x", finds: `error: text follows the end of the document [invalid-syntax]`, byGo: "after top-level value", byCore: coreParse},
	{says: "nor with a byte order mark", bootstrap: "\ufeff" + with(`"node": {}`), finds: `error: JSON has no byte order mark [invalid-syntax]`, byGo: "looking for beginning of value", byCore: coreParse},
	{says: "a key is there once", bootstrap: with(`"node": {}, "node": {}`), finds: `error: key "node" is set twice in one object [duplicate-key]`, byGo: "takes", byCore: "duplicate key", differs: "grpc-go takes the last"},
	{says: "the string is an object", bootstrap: `[]`, finds: `error: the bootstrap has to be an object, and is a list [grpc-bootstrap]`, byGo: "cannot unmarshal array", byCore: notObject},
	// xds_servers
	{says: "it has servers", bootstrap: `{"node": {}}`, finds: `error: the bootstrap has no xds_servers [grpc-bootstrap]`, byGo: "required field `xds_servers` not found", byCore: "field:xds_servers error:field not present"},
	{says: "the name is as the description has it", bootstrap: `{"xdsServers": [{` + oneServer + `}]}`, finds: "error: the bootstrap has no xds_servers [grpc-bootstrap]\nwarning: the bootstrap has no field \"xdsServers\": clients ignore it [grpc-bootstrap-ignored]", byGo: "required field", byCore: "field not present"},
	{says: "in these letters", bootstrap: `{"XDS_SERVERS": [{` + oneServer + `}]}`, finds: "error: the bootstrap has no xds_servers [grpc-bootstrap]\nwarning: the bootstrap has no field \"XDS_SERVERS\": clients ignore it [grpc-bootstrap-ignored]", byGo: "takes", byCore: "field not present", differs: "grpc-go takes capitals for small letters"},
	{says: "one of them at least", bootstrap: `{"xds_servers": []}`, finds: `error: xds_servers is empty [grpc-bootstrap]`, byGo: "required field `xds_servers` not found", byCore: "must be non-empty"},
	{says: "the value is an array", bootstrap: `{"xds_servers": {}}`, finds: `error: xds_servers has to be a list, and is an object [grpc-bootstrap]`, byGo: "cannot unmarshal object", byCore: "is not an array"},
	{says: "null is no value", bootstrap: `{"xds_servers": null}`, finds: `error: the bootstrap has no xds_servers [grpc-bootstrap]`, byGo: "not found", byCore: "field not present"},
	{says: "of server configurations", bootstrap: `{"xds_servers": [null]}`, finds: `error: xds_servers[0] has to be an object, and is null [grpc-bootstrap]`, byGo: "crashes", byCore: notObject},
	{says: "several, to fail over", bootstrap: `{"xds_servers": [{` + oneServer + `}, {` + strings.Replace(oneServer, "unix:", "unix://", 1) + `}]}`, byGo: "takes"},
	{says: "each of them once", bootstrap: `{"xds_servers": [{` + oneServer + `}, {` + oneServer + `}]}`, finds: `error: xds_servers[1] is the same as xds_servers[0]: clients on C-core crash if the server is down [grpc-bootstrap]`, byGo: "takes", byCore: "crashes"},
	{says: "all of them are read", bootstrap: `{"xds_servers": [{` + oneServer + `}, {}]}`, finds: "error: xds_servers[1] has no channel_creds [grpc-bootstrap]\nerror: xds_servers[1] has no server_uri [grpc-bootstrap]", byGo: "`server_uri` field in server config cannot be empty", byCore: "xds_servers[1].server_uri error:field not present"},
	{says: "a server has a URI", bootstrap: server(`"channel_creds": [{"type": "insecure"}]`), finds: `error: xds_servers[0] has no server_uri [grpc-bootstrap]`, byGo: "cannot be empty", byCore: "field not present"},
	{says: "it is not empty", bootstrap: server(`"server_uri": "", "channel_creds": [{"type": "insecure"}]`), finds: `error: server_uri is empty [grpc-bootstrap]`, byGo: "cannot be empty", byCore: "lame channel"},
	{says: "it is a string", bootstrap: server(`"server_uri": 1, "channel_creds": [{"type": "insecure"}]`), finds: `error: server_uri has to be text, and is a number [grpc-bootstrap]`, byGo: "cannot unmarshal number", byCore: "is not a string"},
	{says: "suitable for a channel", bootstrap: server(`"server_uri": "http://127.0.0.1:1", "channel_creds": [{"type": "insecure"}]`), finds: `error: gRPC has no way to connect to a server by http:// [grpc-bootstrap]`, byGo: "too many colons", byCore: "address lookup failed"},
	{says: "which xDS is not", bootstrap: server(`"server_uri": "xds:///a", "channel_creds": [{"type": "insecure"}]`), finds: `error: a client can't find its xDS server by xDS [grpc-bootstrap]`, byGo: "failed to read xDS bootstrap config", byCore: "not asked"},
	{says: "a path of a Unix socket is", bootstrap: server(`"server_uri": "unix:///nonexistent", "channel_creds": [{"type": "insecure"}]`), byGo: "takes"},
	{says: "what it does not know it ignores", bootstrap: server(oneServer + `, "server_feature": []`), finds: `warning: an entry of xds_servers has no field "server_feature": clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	// allowed_grpc_services (A102) and call_creds (A97), with the environment variables experimental
	{newer: true, says: "services that a server may name", bootstrap: with(`"allowed_grpc_services": {"dns:///a:1": {"channel_creds": [{"type": "insecure"}]}}`), byGo: "takes"},
	{newer: true, says: "none", bootstrap: with(`"allowed_grpc_services": {}`), byGo: "takes"},
	{newer: true, says: "each with credentials", bootstrap: with(`"allowed_grpc_services": {"dns:///a:1": {}}`), finds: "error: allowed_grpc_services[\"dns:///a:1\"] has no channel_creds [grpc-bootstrap]", byGo: "no supported channel credentials found", byCore: "field not present"},
	{newer: true, says: "of calls", bootstrap: calls(`{"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}}`), byGo: "takes"},
	{newer: true, says: "of a type that is not known", bootstrap: calls(`{"type": "jwt"}`), finds: `warning: no client knows call credentials of type "jwt": clients skip the entry [grpc-bootstrap-ignored]`, byGo: "takes"},
	{newer: true, says: "with the file of a token", bootstrap: calls(`{"type": "jwt_token_file", "config": {}}`), finds: `error: config has no jwt_token_file [grpc-bootstrap]`, byGo: "jwt_token_file is required", byCore: "field not present"},
	{newer: true, says: "in a config", bootstrap: calls(`{"type": "jwt_token_file"}`), finds: `error: xds_servers[0].call_creds[0] has no config [grpc-bootstrap]`, byGo: "JWT call credentials config", byCore: "field not present"},
	{newer: true, says: "in a list", bootstrap: server(oneServer + `, "call_creds": {}`), finds: `error: call_creds has to be a list, and is an object [grpc-bootstrap]`, byGo: "cannot unmarshal object", byCore: "is not an array"},
	{says: "what a draft has is not known (A67)", bootstrap: with(`"dynamic_parameters": {"env": "prod"}`), finds: `warning: the bootstrap has no field "dynamic_parameters": clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	// channel_creds
	{says: "credentials are required", bootstrap: server(`"server_uri": "unix:/nonexistent"`), finds: `error: xds_servers[0] has no channel_creds [grpc-bootstrap]`, byGo: "`channel_creds` field in server config cannot be empty", byCore: "field not present"},
	{says: "with one type that the client supports", bootstrap: creds(``), finds: `error: channel_creds has no entry of a type that clients know [grpc-bootstrap]`, byGo: "cannot be empty", byCore: "no known creds type found"},
	{says: "not only others", bootstrap: creds(`{"type": "mtls"}`), finds: "error: channel_creds has no entry of a type that clients know [grpc-bootstrap]\nwarning: no client knows channel credentials of type \"mtls\": clients skip the entry [grpc-bootstrap-ignored]", byGo: "cannot be empty", byCore: "no known creds type found"},
	{says: "it stops at the first that it supports", bootstrap: creds(`{"type": "mtls"}, {"type": "insecure"}`), finds: `warning: no client knows channel credentials of type "mtls": clients skip the entry [grpc-bootstrap-ignored]`, byGo: "takes"},
	{says: "and goes no further", bootstrap: creds(`{"type": "insecure"}, {"type": "tls"}`), finds: `warning: no client uses this entry: each stops at insecure, in front of it [grpc-bootstrap-ignored]`, byGo: "takes"},
	{says: "but reads the rest", bootstrap: creds(`{"type": "insecure"}, {"type": "tls", "config": {"certificate_file": "/c"}}`), finds: "warning: no client uses this entry: each stops at insecure, in front of it [grpc-bootstrap-ignored]\nerror: certificate_file needs private_key_file beside it [grpc-bootstrap]", byGo: pair, byCore: corePair},
	{says: "old clients have no tls", bootstrap: creds(`{"type": "tls"}, {"type": "insecure"}`), byGo: "takes"},
	{says: "an entry has a type", bootstrap: creds(`{}, {"type": "insecure"}`), finds: `error: xds_servers[0].channel_creds[0] has no type [grpc-bootstrap]`, byGo: "takes", byCore: "field not present", differs: "grpc-go skips it"},
	{says: "the config may be missing", bootstrap: creds(`{"type": "tls"}`), byGo: "takes"},
	{says: "or be null", bootstrap: creds(`{"type": "tls", "config": null}`), byGo: "takes"},
	{says: "it is an object", bootstrap: creds(`{"type": "insecure", "config": "a"}`), finds: `error: config has to be an object, and is text [grpc-bootstrap]`, byGo: "takes", byCore: notObject, differs: "grpc-go does not look at it"},
	{says: "for types that nobody knows, too", bootstrap: creds(`{"type": "mtls", "config": "a"}, {"type": "insecure"}`), finds: "warning: no client knows channel credentials of type \"mtls\": clients skip the entry [grpc-bootstrap-ignored]\nerror: config has to be an object, and is text [grpc-bootstrap]", byGo: "takes", byCore: notObject, differs: "grpc-go does not look at it"},
	{says: "insecure accepts no configuration", bootstrap: creds(`{"type": "insecure", "config": {"a": 1}}`), finds: `warning: insecure takes no config: clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	{says: "google_default accepts no configuration", bootstrap: creds(`{"type": "google_default", "config": {}}`), finds: `warning: google_default takes no config: clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes", byCore: "not asked"}, // C-core looks for credentials of Google
	// server_features
	{says: "features of servers", bootstrap: features(`["xds_v3", "ignore_resource_deletion"]`), byGo: "takes"},
	{says: "an entry that it does not understand is ignored", bootstrap: features(`["xds_v4"]`), finds: `warning: no client knows the server feature "xds_v4": clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	{says: "regardless of type", bootstrap: features(`[1]`), finds: `warning: a feature is text, and this is a number: clients ignore it, but grpc-go refuses the bootstrap [grpc-bootstrap-ignored]`, byGo: "cannot unmarshal number", byCore: "takes", differs: "grpc-go takes texts alone"},
	{says: "they are a list", bootstrap: features(`"xds_v3"`), finds: `error: server_features has to be a list, and is text [grpc-bootstrap]`, byGo: "cannot unmarshal string", byCore: "is not an array"},
	// node
	{says: "the node may be missing", bootstrap: server(oneServer), byGo: "takes"},
	{says: "it is an object", bootstrap: with(`"node": []`), finds: `error: node has to be an object, and is a list [grpc-bootstrap]`, byGo: "cannot unmarshal array", byCore: notObject},
	{says: "with an identifier and a cluster", bootstrap: with(`"node": {"id": "a", "cluster": "b"}`), byGo: "takes"},
	{says: "which are strings", bootstrap: with(`"node": {"id": 1, "cluster": true}`), finds: "error: id has to be text, and is a number [grpc-bootstrap]\nerror: cluster has to be text, and is a boolean [grpc-bootstrap]", byGo: "cannot unmarshal", byCore: "is not a string"},
	{says: "and a locality", bootstrap: with(`"node": {"locality": {"region": "r", "zone": "z", "sub_zone": "s"}}`), byGo: "takes"},
	{says: "which is an object", bootstrap: with(`"node": {"locality": "r"}`), finds: `error: locality has to be an object, and is text [grpc-bootstrap]`, byGo: "cannot unmarshal string", byCore: notObject},
	{says: "of strings", bootstrap: with(`"node": {"locality": {"zone": 1}}`), finds: `error: zone has to be text, and is a number [grpc-bootstrap]`, byGo: "cannot unmarshal number", byCore: "is not a string"},
	{says: "metadata are any object", bootstrap: with(`"node": {"metadata": {"a": [1, null, {"b": true}]}}`), byGo: "takes"},
	{says: "no list", bootstrap: with(`"node": {"metadata": []}`), finds: `error: metadata has to be an object, and is a list [grpc-bootstrap]`, byGo: "syntax error", byCore: notObject},
	{says: "however deep", bootstrap: with(`"node": {"metadata": ` + strings.Repeat(`{"a":`, 253) + `1` + strings.Repeat(`}`, 253) + `}`), byGo: "takes"},
	{says: "but not deeper", bootstrap: with(`"node": {"metadata": ` + strings.Repeat(`{"a":`, 254) + `1` + strings.Repeat(`}`, 254) + `}`), finds: `error: the document is nested more than 255 levels deep, which clients on C-core refuse [grpc-bootstrap]`, byGo: "takes", byCore: "exceeded max stack depth", differs: "grpc-go reads 10000 levels"},
	{says: "nothing else", bootstrap: with(`"node": {"labels": {}}`), finds: `warning: node has no field "labels": clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	// certificate_providers
	{says: "providers are a map", bootstrap: with(`"certificate_providers": []`), finds: `error: certificate_providers has to be an object, and is a list [grpc-bootstrap]`, byGo: "cannot unmarshal array", byCore: notObject},
	{says: "of objects", bootstrap: with(`"certificate_providers": {"own": null}`), finds: `error: certificate_providers["own"] has to be an object, and is null [grpc-bootstrap]`, byGo: "takes", byCore: notObject, differs: "grpc-go skips it"},
	{says: "each with a plugin", bootstrap: provider(``), finds: `error: certificate_providers["own"] has no plugin_name [grpc-bootstrap]`, byGo: "takes", byCore: "field not present", differs: "grpc-go skips it"},
	{says: "of the client's", bootstrap: provider(`"plugin_name": "vault"`), finds: `warning: gRPC has no plugin "vault": grpc-go ignores the provider, and clients on C-core refuse the bootstrap [grpc-bootstrap-ignored]`, byGo: "takes", byCore: "Unrecognized plugin name", differs: "C-core knows one plugin, and ignores none"},
	{says: "the config may be missing if nothing is required", bootstrap: provider(`"plugin_name": "file_watcher"`), finds: `error: certificate_providers["own"] has no config [grpc-bootstrap]`, byGo: "unexpected end of JSON input", byCore: "must be specified"},
	{says: "a file_watcher has three files", bootstrap: watcher(`"certificate_file": "/c", "private_key_file": "/k", "ca_certificate_file": "/ca", "refresh_interval": "600s"`), byGo: "takes"},
	{says: "or the CA's", bootstrap: watcher(`"ca_certificate_file": "/ca"`), byGo: "takes"},
	{says: "one at least", bootstrap: watcher(``), finds: `error: the config of a file_watcher names no file [grpc-bootstrap]`, byGo: "at least one credential file", byCore: "must be specified"},
	{says: "a certificate has a key", bootstrap: watcher(`"certificate_file": "/c"`), finds: `error: certificate_file needs private_key_file beside it [grpc-bootstrap]`, byGo: pair, byCore: corePair},
	{says: "the interval is a duration", bootstrap: watcher(`"ca_certificate_file": "/ca", "refresh_interval": "10m"`), finds: `error: refresh_interval "10m" is no duration [grpc-bootstrap]`, byGo: "invalid google.protobuf.Duration", byCore: "Not a duration"},
	{says: "nothing else is known", bootstrap: watcher(`"ca_certificate_file": "/ca", "ca_file": "/ca"`), finds: `warning: the config of tls and of file_watcher has no field "ca_file": clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	// server_listener_resource_name_template
	{says: "all instances of %s are replaced", bootstrap: with(serverTemplate("a/%s/%s")), byGo: "takes"},
	{says: "there need not be one", bootstrap: with(serverTemplate("a")), byGo: "takes"},
	{says: "a template is a string", bootstrap: with(`"server_listener_resource_name_template": 1`), finds: `error: server_listener_resource_name_template has to be text, and is a number [grpc-bootstrap]`, byGo: "cannot unmarshal number", byCore: "is not a string"},
	{says: "an authority of it that is not present is an error", bootstrap: with(serverTemplate("xdstp://b/envoy.config.listener.v3.Listener/%s")), finds: `error: the template has the authority "b", which authorities does not have [grpc-bootstrap]`, byGo: "takes", differs: "a server fails once it listens"},
	// client_default_listener_resource_name_template
	{says: "the service authority replaces %s", bootstrap: with(clientTemplate("a-%s")), byGo: "takes"},
	{says: "the default is %s", bootstrap: with(clientTemplate("")), byGo: "takes"},
	{says: "with xdstp: its authority is looked up", bootstrap: authority("b", "", ", "+clientTemplate("xdstp://b/envoy.config.listener.v3.Listener/%s")), byGo: "takes"},
	{says: "one that is not present is an error", bootstrap: with(clientTemplate("xdstp://b/envoy.config.listener.v3.Listener/%s")), finds: `error: the template has the authority "b", which authorities does not have [grpc-bootstrap]`, byGo: `authority "b" not found`, byCore: `authority "b" not present`},
	{says: "without an authority it is the empty string", bootstrap: authority("", "", ", "+clientTemplate("xdstp:///envoy.config.listener.v3.Listener/%s")), byGo: "takes"},
	{says: "which has to be present, too", bootstrap: with(clientTemplate("xdstp:///envoy.config.listener.v3.Listener/%s")), finds: `error: the template has the authority "", which authorities does not have [grpc-bootstrap]`, byGo: `authority "" not found`, byCore: `authority "" not present`},
	{says: "a new-style name has a type", bootstrap: authority("b", "", ", "+clientTemplate("xdstp://b/%s")), finds: `error: the template makes no names of listeners: clients on C-core can't parse them [grpc-bootstrap]`, byGo: "takes", byCore: noName, differs: "grpc-go asks for it"},
	{says: "that of listeners", bootstrap: authority("b", "", ", "+clientTemplate("xdstp://b/envoy.config.cluster.v3.Cluster/%s")), finds: `error: the template makes no names of listeners: clients on C-core can't parse them [grpc-bootstrap]`, byGo: "takes", byCore: noName, differs: "grpc-go asks for it"},
	{says: "and two slashes", bootstrap: authority("b", "", ", "+clientTemplate("xdstp:b/%s")), finds: `error: the template makes no names of listeners: clients on C-core can't parse them [grpc-bootstrap]`, byGo: "takes", byCore: noName, differs: "grpc-go takes it for an old name"},
	// authorities
	{says: "authorities are a map", bootstrap: with(`"authorities": []`), finds: `error: authorities has to be an object, and is a list [grpc-bootstrap]`, byGo: "cannot unmarshal array", byCore: notObject},
	{says: "of objects", bootstrap: with(`"authorities": {"b": null}`), finds: `error: authorities["b"] has to be an object, and is null [grpc-bootstrap]`, byGo: "crashes", byCore: notObject},
	{says: "all of an authority has a default", bootstrap: authority("b", "", ""), byGo: "takes"},
	{says: "its template begins with its name", bootstrap: authorityTemplate("b", "xdstp://b/envoy.config.listener.v3.Listener/%s"), byGo: "takes"},
	{says: "if it does not, that is an error", bootstrap: authorityTemplate("b", "xdstp://c/envoy.config.listener.v3.Listener/%s"), finds: `error: the template of authority "b" has to begin with xdstp://b/ [grpc-bootstrap]`, byGo: "doesn't start with prefix", byCore: begins},
	{says: "an old-style one, too", bootstrap: authorityTemplate("b", "%s"), finds: `error: the template of authority "b" has to begin with xdstp://b/ [grpc-bootstrap]`, byGo: "doesn't start with prefix", byCore: begins},
	{says: "a slash follows the name", bootstrap: authorityTemplate("b", "xdstp://bc/envoy.config.listener.v3.Listener/%s"), finds: `error: the template of authority "b" has to begin with xdstp://b/ [grpc-bootstrap]`, byGo: "takes", byCore: begins, differs: "grpc-go looks for no slash"},
	{says: "its template makes names of listeners", bootstrap: authorityTemplate("b", "xdstp://b/foo/%s"), finds: `error: the template makes no names of listeners: clients on C-core can't parse them [grpc-bootstrap]`, byGo: "takes", differs: "a client fails at a target with this authority"},
	{says: "a name that a URI can't have, as it is", bootstrap: authorityTemplate("b c", "xdstp://b c/envoy.config.listener.v3.Listener/%s"), finds: `error: no template suits all clients: grpc-go wants xdstp://b%20c/, and clients on C-core want xdstp://b c/ [grpc-bootstrap]`, byGo: "doesn't start with prefix", byCore: "takes", differs: "grpc-go wants it percent-encoded"},
	{says: "a name that a URI can't have, percent-encoded", bootstrap: authorityTemplate("b c", "xdstp://b%20c/envoy.config.listener.v3.Listener/%s"), finds: `error: no template suits all clients: grpc-go wants xdstp://b%20c/, and clients on C-core want xdstp://b c/ [grpc-bootstrap]`, byGo: "takes", byCore: "field must begin with", differs: "the description wants it as it is"},
	{says: "an authority has servers of its own", bootstrap: authority("b", `"xds_servers": [{`+oneServer+`}]`, ""), byGo: "takes"},
	{says: "in the same format", bootstrap: authority("b", `"xds_servers": [{"server_uri": "unix:/nonexistent"}]`, ""), finds: `error: authorities["b"].xds_servers[0] has no channel_creds [grpc-bootstrap]`, byGo: "`channel_creds` field in server config cannot be empty", byCore: "field not present"},
	{says: "or those of the top", bootstrap: authority("b", `"xds_servers": []`, ""), byGo: "takes"},
	{says: "a field at another level is unknown", bootstrap: authority("b", `"server_uri": "a"`, ""), finds: `warning: an entry of authorities has no field "server_uri": clients ignore it [grpc-bootstrap-ignored]`, byGo: "takes"},
	// tls
	{says: "no CA: the roots of the system", bootstrap: tlsWith(``), byGo: "takes"},
	{says: "a CA", bootstrap: tlsWith(`"ca_certificate_file": "/ca"`), byGo: "takes"},
	{says: "a path is a string", bootstrap: tlsWith(`"ca_certificate_file": 1`), finds: `error: ca_certificate_file has to be text, and is a number [grpc-bootstrap]`, byGo: "cannot unmarshal number", byCore: "is not a string"},
	{says: "if the certificate is set, the key must be", bootstrap: tlsWith(`"certificate_file": "/c"`), finds: `error: certificate_file needs private_key_file beside it [grpc-bootstrap]`, byGo: pair, byCore: corePair},
	{says: "if the key is set, the certificate must be", bootstrap: tlsWith(`"private_key_file": "/k"`), finds: `error: private_key_file needs certificate_file beside it [grpc-bootstrap]`, byGo: pair, byCore: corePair},
	{says: "both: mutual TLS", bootstrap: tlsWith(`"certificate_file": "/c", "private_key_file": "/k"`), byGo: "takes"},
	{says: "wherever they are", bootstrap: tlsWith(`"certificate_file": "/a/c", "private_key_file": "/b/k"`), finds: `error: certificate_file and private_key_file are in different folders, which grpc-go refuses [grpc-bootstrap]`, byGo: "must be in the same directory", byCore: "takes", differs: "grpc-go wants them in one folder"},
	{says: "an interval of a Duration", bootstrap: tlsWith(`"ca_certificate_file": "/ca", "refresh_interval": "0.5s"`), byGo: "takes"},
	{says: "of its JSON form", bootstrap: tlsWith(`"ca_certificate_file": "/ca", "refresh_interval": "10m"`), finds: `error: refresh_interval "10m" is no duration [grpc-bootstrap]`, byGo: "invalid google.protobuf.Duration", byCore: "Not a duration"},
	{says: "no number", bootstrap: tlsWith(`"ca_certificate_file": "/ca", "refresh_interval": 600`), finds: `error: refresh_interval has to be text, and is a number [grpc-bootstrap]`, byGo: "unexpected token", byCore: "is not a string"},
	{says: "within its range", bootstrap: tlsWith(`"ca_certificate_file": "/ca", "refresh_interval": "315576000001s"`), finds: `error: refresh_interval "315576000001s" is no duration [grpc-bootstrap]`, byGo: "out of range", byCore: "must be in the range"},
	{says: "not negative", bootstrap: tlsWith(`"ca_certificate_file": "/ca", "refresh_interval": "-1s"`), finds: `error: refresh_interval "-1s" is negative, which makes grpc-go crash [grpc-bootstrap]`, byGo: "crashes", byCore: "must be in the range"},
	{says: "also where no file is read", bootstrap: tlsWith(`"refresh_interval": "10m"`), finds: `error: refresh_interval "10m" is no duration [grpc-bootstrap]`, byGo: "takes", byCore: "Not a duration", differs: "grpc-go does not look at it"},
}

// TestSentences compares Parse and grpc-go with the sentences.
func TestSentences(t *testing.T) {
	for _, s := range sentences {
		t.Run(s.says, func(t *testing.T) {
			t.Parallel()
			var found []string
			for _, d := range grpcboot.Parse("b.json", []byte(s.bootstrap)).Diagnostics {
				_, text, _ := strings.Cut(d.String(), ": ")
				found = append(found, text)
			}
			if got := strings.Join(found, "\n"); got != s.finds {
				t.Errorf("Parse finds\n%s\nwant\n%s\nin %s", got, s.finds, s.bootstrap)
			}
			if words := byGo(t, s); !says(words, s.byGo) {
				t.Errorf("grpc-go says %q, want %q to %s", words, s.byGo, s.bootstrap)
			}
			agree(t, s)
		})
	}
}

// agree checks that Parse reports an error if and only if a client refuses the bootstrap. differs allows an
// exception.
func agree(t *testing.T, s sentence) {
	t.Helper()
	refused := s.byGo != "takes" || s.byCore != "takes" && s.byCore != "not asked" && s.byCore != ""
	if found := strings.Contains(s.finds, "error: "); found != refused && s.differs == "" {
		t.Errorf("an error: %t; a client refuses it: %t; and nothing tells why", found, refused)
	}
}

// says reports whether a client has the wanted reaction.
func says(words, want string) bool {
	if want == "takes" || want == "crashes" {
		return words == want
	}
	return strings.Contains(words, want)
}

// tryVariable is set if this program must try a bootstrap instead of running tests. Its value is the bootstrap, or
// "environment" for the bootstrap that gRPC finds itself.
const tryVariable = "XDSPUB_TRY_BOOTSTRAP"

func TestMain(m *testing.M) {
	switch b := os.Getenv(tryVariable); b {
	case "":
	case "environment":
		fmt.Println(callBy(context.Background()))
		os.Exit(0)
	default:
		fmt.Println(callByGo(context.Background(), b))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// byGo returns the reaction of grpc-go to a bootstrap. It uses a process of its own if grpc-go crashes, or needs
// the variables experimental.
func byGo(t *testing.T, s sentence) string {
	if s.byGo != "crashes" && !s.newer {
		return callByGo(t.Context(), s.bootstrap)
	}
	var words string
	for range 10 { // grpc-go may crash only after the program has ended
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), tryVariable+"="+s.bootstrap), experimental...)
		out, err := cmd.CombinedOutput()
		if _, ended := errors.AsType[*exec.ExitError](err); ended && strings.Contains(string(out), "panic: ") {
			return "crashes"
		}
		if words = strings.TrimSpace(string(out)); s.byGo != "crashes" {
			break
		}
	}
	return words
}

// callByGo makes a call by xDS, and returns the reaction to the bootstrap. No server runs: if the call fails
// because of that, grpc-go accepts the bootstrap.
func callByGo(ctx context.Context, bootstrap string) string {
	resolver, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		return err.Error()
	}
	return callBy(ctx, grpc.WithResolvers(resolver))
}

func callBy(ctx context.Context, o ...grpc.DialOption) string {
	conn, err := grpc.NewClient("xds:///x", append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		// At times, grpc-go reports an update without addresses before it has the real reason.
		if words := fmt.Sprint(err); ctx.Err() != nil || !strings.Contains(words, "produced zero addresses") {
			return took(words)
		}
	}
}

// took returns "takes" for an error about an unreachable server, and any other error unchanged.
func took(words string) string {
	for _, refusal := range []string{"create xds-client", "not found in the config", "too many colons", "Failed to create XdsClient", "not present in bootstrap", "Unable to parse", "lame channel", "address lookup failed"} {
		if strings.Contains(words, refusal) {
			return words
		}
	}
	return "takes"
}

// TestEnvironment: gRPC reads the file that GRPC_XDS_BOOTSTRAP names. Without this variable, it reads the text in
// GRPC_XDS_BOOTSTRAP_CONFIG.
func TestEnvironment(t *testing.T) {
	good, bad := filepath.Join(t.TempDir(), "good.json"), filepath.Join(t.TempDir(), "bad.json")
	for path, text := range map[string]string{good: with(`"node": {}`), bad: "{"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, text string
		takes      bool
	}{
		{good, "{", true}, {bad, with(`"node": {}`), false}, {"", with(`"node": {}`), true}, {"", "{", false}, {good, "", true},
	} {
		commands := [][]string{{os.Args[0]}}
		if installed := os.Getenv("XDSPUB_INTEROP"); installed != "" {
			commands = append(commands, []string{filepath.Join(installed, "python/bin/python"), "../../e2e/interop/python/client.py", "xds:///x"})
		}
		for _, command := range commands {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), tryVariable+"=environment", "GRPC_XDS_BOOTSTRAP_CONFIG="+c.text)
			if c.path != "" || len(command) == 1 { // C-core reads an empty variable as a path
				cmd.Env = append(cmd.Env, "GRPC_XDS_BOOTSTRAP="+c.path)
			}
			cmd.Stdin = strings.NewReader("\n")
			out, err := cmd.Output()
			if words := strings.TrimSpace(took(string(out))); err != nil || (words == "takes") != c.takes {
				t.Errorf("%s, by %q and %q: %s (%v)", command[0], c.path, c.text, words, err)
			}
		}
	}
}

// TestSentencesByCore compares C-core with the sentences. It uses the client for Python, which make interop
// installs.
func TestSentencesByCore(t *testing.T) {
	python := filepath.Join(os.Getenv("XDSPUB_INTEROP"), "python/bin/python")
	for _, s := range sentences {
		if os.Getenv("XDSPUB_INTEROP") == "" || s.byCore == "not asked" {
			continue
		}
		t.Run(s.says, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "../../e2e/interop/python/client.py", "xds:///x")
			cmd.Env = append(append(os.Environ(), "GRPC_XDS_BOOTSTRAP_CONFIG="+s.bootstrap), experimental...)
			cmd.Stdin = strings.NewReader("\n")
			out, err := cmd.CombinedOutput()
			words := took(string(out))
			if crash, ended := errors.AsType[*exec.ExitError](err); ended && crash.ExitCode() < 0 {
				words = "crashes"
			} else if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := s.byCore
			if want == "" {
				want = s.byGo
			}
			if !says(words, want) {
				t.Errorf("C-core says %q, want %q to %s", words, want, s.bootstrap)
			}
		})
	}
}
