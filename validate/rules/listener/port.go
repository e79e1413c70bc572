package listener

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// bindsToPort reports whether a listener binds its addresses. It returns false if bind_to_port or its deprecated
// form is false.
func bindsToPort(l *listenerv3.Listener) bool {
	for _, b := range []*wrapperspb.BoolValue{l.GetBindToPort(), l.GetDeprecatedV1().GetBindToPort()} {
		if b != nil && !b.GetValue() {
			return false
		}
	}
	return true
}

// reusesPort reports whether a listener sets SO_REUSEPORT. This is the default.
func reusesPort(l *listenerv3.Listener) bool {
	return l.GetEnableReusePort() == nil || l.GetEnableReusePort().GetValue()
}
