package facts

// ReverseConnectionResolver takes what a listener of reverse connections has for an address.
const ReverseConnectionResolver = "envoy.resolvers.reverse_connection"
