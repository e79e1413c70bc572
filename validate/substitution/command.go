package substitution

import (
	"slices"
	"strings"
	"sync"

	"xdspub/diag"
)

// command is one of Envoy's commands.
type command struct {
	// needsArg and takesLength say what may stand after the name. A plain command
	// has neither argument nor length.
	plain, needsArg, takesLength bool
	// check judges the argument; nil takes any.
	check func(call) *Fault
}

// call is a command as it stands in a format.
type call struct {
	name, arg string
	length    bool
	x         Extensions
}

func (c call) check() *Fault {
	cmd, ok := lookup(c.name, c.x)
	switch {
	case !ok && c.x.Unknown:
		return nil
	case !ok:
		return unknown(c.name)
	case cmd.plain && (c.arg != "" || c.length):
		return &Fault{Message: "the command takes neither an argument nor a length", Help: "write %" + c.name + "%"}
	case cmd.needsArg && c.arg == "":
		return &Fault{Message: "the command needs an argument", Help: "write %" + c.name + "(…)%"}
	case !cmd.plain && !cmd.takesLength && c.length:
		return &Fault{Message: "the command takes no length", Help: "remove the :LENGTH"}
	case cmd.check != nil:
		return cmd.check(c)
	}
	return nil
}

func lookup(name string, x Extensions) (command, bool) {
	switch {
	case x.Generic && slices.Contains(genericNames, name):
		return command{takesLength: true}, true
	case name == "COALESCE": // not in the table: its operators are looked up there
		return command{needsArg: true, takesLength: true, check: coalesce}, true
	case name == "REQ_WITHOUT_QUERY" && x.RequestWithoutQuery:
		return command{takesLength: true, check: headers}, true
	case name == "FILE_CONTENT" && x.FileContent:
		return command{takesLength: true, check: fileContent}, true
	case name == "SECRET" && x.Secrets != nil:
		return command{takesLength: true, check: secret}, true
	case (name == "REQUEST_BODY" || name == "RESPONSE_BODY") && x.Bodies:
		return command{takesLength: true}, true
	}
	if slices.Contains(plainNames(), name) {
		return command{plain: true}, true
	}
	cmd, ok := commands[name]
	return cmd, ok
}

// needs are the formatters that bring a command.
var needs = map[string]string{
	"FILE_CONTENT":      "envoy.formatter.file_content",
	"REQ_WITHOUT_QUERY": "envoy.formatter.req_without_query",
	"SECRET":            "envoy.formatter.generic_secret",
}

func unknown(name string) *Fault {
	f := &Fault{Message: "unknown command"}
	if formatter, ok := needs[name]; ok {
		f.Help = "list " + formatter + " in the formatters beside the format"
	} else if near := allNames().Nearest(name); near != "" {
		f.Help, f.Correction = "did you mean %"+near+"%?", diag.Correction{Wrong: "%" + name, Right: "%" + near}
	}
	return f
}

// commands are those with an argument or a length.
var commands = map[string]command{
	"REQ":              {needsArg: true, takesLength: true, check: headers},
	"REQUEST_HEADER":   {needsArg: true, takesLength: true, check: headers},
	"RESP":             {needsArg: true, takesLength: true, check: headers},
	"RESPONSE_HEADER":  {needsArg: true, takesLength: true, check: headers},
	"TRAILER":          {needsArg: true, takesLength: true, check: headers},
	"RESPONSE_TRAILER": {needsArg: true, takesLength: true, check: headers},
	"STREAM_INFO_REQ":  {needsArg: true, takesLength: true, check: headers},

	"PATH":         {takesLength: true, check: options(pathQuery, pathSource)},
	"QUERY_PARAM":  {needsArg: true, takesLength: true},
	"QUERY_PARAMS": {takesLength: true, check: oneOf("ORIG", "DECODED")},
	"ENVIRONMENT":  {needsArg: true, takesLength: true},
	"XFCC_VALUE":   {needsArg: true, takesLength: true, check: xfccKey},
	"GRPC_STATUS":  {check: oneOf("CAMEL_STRING", "SNAKE_STRING", "NUMBER")},

	"REQUESTED_SERVER_NAME": {check: options(nameFrom, hostSource)},
	"RESPONSE_CODE_DETAILS": {},
	"COMMON_DURATION":       {needsArg: true, check: duration},

	"METADATA":          {takesLength: true, check: metadata},
	"DYNAMIC_METADATA":  {needsArg: true, takesLength: true},
	"CLUSTER_METADATA":  {needsArg: true},
	"UPSTREAM_METADATA": {needsArg: true},

	"FILTER_STATE":          {takesLength: true, check: filterState},
	"UPSTREAM_FILTER_STATE": {takesLength: true, check: filterState},

	"CEL":       {needsArg: true, takesLength: true, check: celExpression},
	"TYPED_CEL": {needsArg: true, takesLength: true, check: celExpression},

	"START_TIME":                   {check: timeFormat},
	"START_TIME_LOCAL":             {check: timeFormat},
	"EMIT_TIME":                    {check: timeFormat},
	"EMIT_TIME_LOCAL":              {check: timeFormat},
	"DOWNSTREAM_PEER_CERT_V_START": {check: timeFormat},
	"DOWNSTREAM_PEER_CERT_V_END":   {check: timeFormat},
	"UPSTREAM_PEER_CERT_V_START":   {check: timeFormat},
	"UPSTREAM_PEER_CERT_V_END":     {check: timeFormat},

	"DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT":  {check: maskLength},
	"DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT": {check: maskLength},
	"DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT":         {check: maskLength},
	"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT":        {check: maskLength},
	"UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT":           {check: maskLength},
	"UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT":          {check: maskLength},
}

// genericNames are the commands that generic_proxy brings for its access logs.
var genericNames = []string{"GENERIC_RESPONSE_CODE", "HOST", "METHOD", "PATH", "PROTOCOL", "REQUEST_PROPERTY", "RESPONSE_PROPERTY"}

// plainNames are the commands that stand alone.
var plainNames = sync.OnceValue(func() []string { return strings.Fields(plain) })

const plain = `
	ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS CUSTOM_FLAGS
	DOWNSTREAM_CX_RTT DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT
	DOWNSTREAM_DETECTED_CLOSE_TYPE DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID
	DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_HANDSHAKE_DURATION
	DOWNSTREAM_HEADER_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID
	DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN
	DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_PEER_CERT
	DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256 DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN
	DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_IP_SAN
	DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256 DOWNSTREAM_PEER_ISSUER_SERIAL DOWNSTREAM_PEER_OTHERNAME_SAN
	DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_PORT
	DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_GROUP DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON
	DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_WIRE_BYTES_SENT DURATION FILTER_CHAIN_NAME GRPC_STATUS_NUMBER HOSTNAME LISTENER_NAME
	LOCAL_REPLY_BODY PACKETS_RETRANSMITTED PROTOCOL REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION RESPONSE_CODE
	RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION
	ROUNDTRIP_DURATION ROUTE_NAME ROUTE_RESOLUTION_COUNT ROUTE_RESOLUTION_TIME_US SPAN_ID STREAM_ID TLS_JA3_FINGERPRINT
	TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW UPSTREAM_CONNECTION_ID
	UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
	UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT UPSTREAM_DETECTED_CLOSE_TYPE UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT
	UPSTREAM_HOST UPSTREAM_HOSTS_ATTEMPTED UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME UPSTREAM_HOST_NAMES_ATTEMPTED
	UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_CLOSE_REASON
	UPSTREAM_LOCAL_DNS_SAN UPSTREAM_LOCAL_IP_SAN UPSTREAM_LOCAL_PORT UPSTREAM_LOCAL_URI_SAN UPSTREAM_PEER_CERT UPSTREAM_PEER_DNS_SAN
	UPSTREAM_PEER_IP_SAN UPSTREAM_PEER_ISSUER UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_PROTOCOL UPSTREAM_REMOTE_ADDRESS
	UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID UPSTREAM_REMOTE_PORT UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_SERVER_NAME UPSTREAM_TLS_CIPHER
	UPSTREAM_TLS_GROUP UPSTREAM_TLS_SESSION_ID UPSTREAM_TLS_VERSION UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED
	UPSTREAM_WIRE_BYTES_SENT VIRTUAL_CLUSTER_NAME`

// Names are the built-in commands, sorted.
func Names() []string {
	names := append(slices.Clone(plainNames()), "COALESCE")
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// allNames is for "did you mean".
var allNames = sync.OnceValue(func() *diag.Candidates { return diag.NewCandidates(Names()) })
