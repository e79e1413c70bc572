// Package types asks each stage whether it knows all rows of xds.Types.
package types

import (
	"os"
	"slices"
	"strings"
	"testing"

	annotationsv3 "github.com/envoyproxy/go-control-plane/envoy/annotations"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/envoy"
	"xdspub/render"
	"xdspub/render/published"
	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// TestStages gives each stage a tree with one resource of each row. It fails for a stage that lacks a row, and
// names the stage.
func TestStages(t *testing.T) {
	text, err := os.ReadFile("testdata/every.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loaded := load.Parse(load.Input{Name: "every.yaml", Format: "yaml", Data: text})
	s := loaded.Snapshot()
	if list := append(loaded.Diagnostics, validate.Run(t.Context(), s, rules.All, validate.Options{})...); list.HasErrors() {
		t.Fatal(list)
	}
	var r render.Renderer
	out, list := r.Render(t.Context(), s, render.Target{EnvoyPath: "/xds", Format: render.JSON})
	if out == nil {
		t.Fatal(list)
	}
	watched, methods := subscriptions(out), services()
	page, err := os.ReadFile("../../docs/source-tree.md")
	if err != nil {
		t.Fatal(err)
	}
	turns := make(map[int]*xds.Type)
	for _, typ := range xds.Types {
		t.Run(typ.API, func(t *testing.T) {
			if len(s.Of(typ)) == 0 {
				t.Fatal("testdata/every.yaml has no resource of the type")
			}
			if turns[typ.Turn] != nil || typ.Turn < 1 || typ.Turn > len(xds.Types) {
				t.Errorf("order of make before break: turn %d", typ.Turn)
			}
			turns[typ.Turn] = typ
			if groups := typ.Asked == xds.InGroups; groups != (typ.Group != nil) || groups != (typ.Plural == "") {
				t.Error("row: a type that is asked for in groups, and no other, has a Group and no Plural")
			}
			checkFiles(t, typ, out, watched)
			checkTransition(t, typ, s)
			if !methods[typ.Message] {
				t.Errorf("serve: no service of a gRPC server has the type %s", typ.Message)
			}
			if !strings.Contains(string(page), "("+typ.API+")") {
				t.Errorf("docs/source-tree.md does not name %s", typ.API)
			}
		})
	}
}

// subscriptions returns the subscriptions to the files of an Output.
func subscriptions(out *render.Output) (list []envoy.Subscription) {
	var clusters, listeners []*xds.Resource
	var layers []string
	for _, f := range out.Files {
		switch f.Type {
		case xds.Cluster:
			clusters = f.Resources
		case xds.Listener:
			listeners = f.Resources
		case xds.Runtime:
			layers = append(layers, f.Name)
		}
	}
	for _, sub := range published.New(published.Options{Dir: "/xds"}).Subscribers(clusters, listeners, layers).All {
		list = append(list, sub.Expect("", false))
	}
	return list
}

// checkFiles fails the test unless there are a file with resources of a type, and a subscription to this file with
// stat prefixes. A resource that no file can carry has to be inlined into another resource, which contains the text
// "inlined".
func checkFiles(t *testing.T, typ *xds.Type, out *render.Output, watched []envoy.Subscription) {
	t.Helper()
	i := slices.IndexFunc(out.Files, func(f render.File) bool { return f.Type == typ })
	if typ.Asked == xds.InGroups {
		inside := slices.ContainsFunc(out.Files, func(f render.File) bool { return strings.Contains(string(f.Data), "inlined-"+typ.API) })
		if i >= 0 || !inside {
			t.Error("xds/bind: the resource is in no other one")
		}
		return
	}
	if i < 0 {
		t.Fatal("render: no file")
	}
	j := slices.IndexFunc(watched, func(s envoy.Subscription) bool { return s.File == out.Files[i].Path && s.API == typ.API })
	if j < 0 {
		t.Fatalf("render/published: nothing subscribes to %s", out.Files[i].Path)
	}
	if len(watched[j].StatPrefixes) == 0 || slices.Contains(watched[j].StatPrefixes, "") {
		t.Error("render/published: the subscription has no stat prefix")
	}
}

// checkTransition has transition.Keeps judge the removal of a resource of a type.
func checkTransition(t *testing.T, typ *xds.Type, s *xds.Snapshot) {
	t.Helper()
	defer func() {
		if recover() != nil {
			t.Error("validate/transition: Keeps does not know the type")
		}
	}()
	transition.Keeps([]xds.Edited{{Was: s.Of(typ)[0]}}, s, nil)
}

// services returns the types for which a gRPC server has a singleton service.
func services() map[protoreflect.FullName]bool {
	g, has := grpc.NewServer(), make(map[protoreflect.FullName]bool)
	serve.Register(g, cache.New(cache.Options{}))
	for name := range g.GetServiceInfo() {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			continue
		}
		of, _ := proto.GetExtension(d.Options(), annotationsv3.E_Resource).(*annotationsv3.ResourceAnnotation)
		has[protoreflect.FullName(of.GetType())] = true
	}
	return has
}
