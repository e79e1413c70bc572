package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

// nowhere is an Origin without places.
type nowhere struct{}

func (nowhere) Range(xds.Path) diag.Range        { return diag.Range{} }
func (nowhere) InWrapper(xds.Path) diag.Range    { return diag.Range{} }
func (nowhere) Constraints(bool) (at diag.Range) { return }

func (nowhere) Correct(xds.Path, diag.Correction) (e diag.Edit, ok bool) { return }

func (nowhere) Shows(xds.Path) bool { return false }

// TestManyFindings: Run leaves out findings beyond the limit, the same in each run. The last finding reports this.
func TestManyFindings(t *testing.T) {
	always := &Rule{Code: "always-found", Messages: []protoreflect.FullName{"envoy.config.route.v3.Route"}, Node: func(p *Pass, n *xds.Node) {
		p.Report(Finding{Path: n.Path(), Message: "it is there"})
		p.Report(Finding{Path: n.Path().Field("match"), Message: "it is there"})
	}}
	var resources []*xds.Resource
	for i := range 500 {
		m := &routev3.RouteConfiguration{Name: fmt.Sprintf("r%03d", i), VirtualHosts: []*routev3.VirtualHost{{Name: "v", Routes: []*routev3.Route{{}, {}}}}}
		r, err := xds.NewResource(m, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, r)
	}
	judge := func(most int) []string {
		var list []string
		for _, d := range run(t.Context(), xds.NewSnapshot(resources), []*Rule{always}, Options{}, most) {
			list = append(list, fmt.Sprint(d, d.Resource.Name, d.Path))
		}
		return list
	}
	all := judge(maxFindings)
	few := judge(300)
	if len(all) < 2000 || len(few) != 301 || !strings.Contains(few[len(few)-1]+few[0], "error: too many errors from the rules: only 300 are listed [too-many-findings]") {
		t.Errorf("%d findings, of which %d are listed: %s", len(all), len(few), few[len(few)-1])
	}
	for range 5 {
		if again := judge(300); !slices.Equal(again, few) {
			t.Fatal("another run lists other findings")
		}
	}
}

// TestHasRoom: HasRoom tells a rule that the limit is reached. Findings that wait for the end of the walk do not
// count.
func TestHasRoom(t *testing.T) {
	room := 0
	found := &Rule{Code: "found", Messages: []protoreflect.FullName{"envoy.config.route.v3.Route"}, Node: func(p *Pass, n *xds.Node) {
		f := Finding{Path: n.Path(), Message: "it is there"}
		if p.HasRoom(f) {
			room++
		}
		p.Report(f)
	}}
	r, err := xds.NewResource(&routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{Routes: slices.Repeat([]*routev3.Route{{}}, 5000)}}}, "", nowhere{})
	if err != nil {
		t.Fatal(err)
	}
	const most = 300
	run(t.Context(), xds.NewSnapshot([]*xds.Resource{r}), []*Rule{found}, Options{}, most)
	if room < most || room > most+maxReported {
		t.Errorf("there is room for %d findings, want %d and those that wait", room, most)
	}
}
