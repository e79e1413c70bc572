package main

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// faulty is the program with a bug in a rule of each kind, and in the decoding of a message. A rule panics for a
// cluster that has the name of the rule, the decoding for faulty.Message.
func faulty() {
	named := func(code string, name string) {
		if name == code {
			var none []int
			_ = none[len(name)]
		}
	}
	of := func(code string) *validate.Rule {
		r := &validate.Rule{Code: code, Family: "cluster", Severity: diag.Error, Doc: "A rule with a bug."}
		rules.All = append(rules.All, r)
		return r
	}
	cluster := []protoreflect.FullName{xds.Cluster.Message}
	r := of("faulty-node")
	r.Messages, r.Node = cluster, func(p *validate.Pass, _ *xds.Node) { named("faulty-node", p.Resource.Name) }
	r = of("faulty-lookup")
	r.Messages, r.Lookup = cluster, func(p *validate.LookupPass, _ *xds.Node) { named("faulty-lookup", p.Resource.Name) }
	of("faulty-resource").Resource = func(p *validate.LookupPass) { named("faulty-resource", p.Resource.Name) }
	r = of("faulty-snapshot")
	r.Collect, r.Snapshot = cluster, func(p *validate.SnapshotPass) {
		for _, o := range p.Collected {
			named("faulty-snapshot", o.Resource.Name)
		}
	}
	slices.SortFunc(rules.All, func(a, b *validate.Rule) int { return strings.Compare(a.Code, b.Code) })
	if err := protoregistry.GlobalTypes.RegisterMessage(newFaultyType()); err != nil {
		panic(err)
	}
	main()
}

// faultyType is the type of the message faulty.Message, which no program can decode.
type faultyType struct{ protoreflect.MessageType }

func newFaultyType() faultyType {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("faulty.proto"), Package: new("faulty"), MessageType: []*descriptorpb.DescriptorProto{{Name: new("Message")}},
	}, nil)
	if err != nil {
		panic(err)
	}
	return faultyType{dynamicpb.NewMessageType(file.Messages().Get(0))}
}

// New panics.
func (faultyType) New() protoreflect.Message { panic("the reading is faulty") }
