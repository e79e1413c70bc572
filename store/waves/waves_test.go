package waves_test

import (
	"fmt"
	"strings"
	"testing"

	"xdspub/store/waves"
)

// The waves of a plan take the machines one after the other, and the last wave takes all others.
func Example() {
	p, err := waves.Plan{{Label: "tier=canary", Quorum: 100}, {Percent: 50, Quorum: 90}}.Checked()
	if err != nil {
		fmt.Println(err)
	}
	for _, w := range p {
		fmt.Println(w, w.Quorum)
	}
	fmt.Println(p.Of(waves.Machine{Name: "m1", Labels: "tier=canary,zone=a"}))
	_, err = waves.Plan{{Percent: 50}, {Percent: 10}}.Checked()
	fmt.Println(err)
	// Output:
	// tier=canary 100
	// 50 % 90
	// all machines 90
	// 0
	// wave 2 has no machine, because wave 1 takes its machines before: let the percentages grow, as in 10 and 50, and give the wave of all machines last
}

// TestPercent: a percentage takes about its part of the machines, always the same ones, and a larger percentage takes
// them, too.
func TestPercent(t *testing.T) {
	p, err := waves.Plan{{Percent: 1}, {Percent: 10}, {Percent: 50}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, len(p))
	for i := range 10_000 {
		m := waves.Machine{Name: fmt.Sprintf("web-%d.example", i)}
		wave := p.Of(m)
		counts[wave]++
		if alone := (waves.Plan{{Percent: 50}}).Of(m); (alone == 0) != (wave < 3) {
			t.Fatalf("%s is in wave %d, and in wave %d of 50 %%", m.Name, wave, alone)
		}
	}
	for i, want := range []int{100, 900, 4000, 5000} {
		if n := counts[i]; n < want*8/10 || n > want*12/10 {
			t.Errorf("wave %d has %d machines, and not about %d", i, n, want)
		}
	}
}

// TestChecked: a wave that can have no machine is refused.
func TestChecked(t *testing.T) {
	for _, c := range []struct {
		p     waves.Plan
		empty int // -1 for none
		waves int
	}{
		{nil, -1, 0},
		{waves.Plan{{}}, -1, 1},
		{waves.Plan{{Percent: 100}}, -1, 1},
		{waves.Plan{{Percent: 99}}, -1, 2},
		{waves.Plan{{}, {Percent: 10}}, 1, 0},
		{waves.Plan{{Percent: 10}, {Percent: 10}}, 1, 0},
		{waves.Plan{{Label: "a=b"}, {Label: "a=b"}}, 1, 0},
		{waves.Plan{{Label: "a=b", Percent: 10}, {Label: "a=b"}}, -1, 3},
		{waves.Plan{{Percent: 10}, {Label: "a=b", Percent: 5}}, 1, 0},
		{waves.Plan{{Targets: []string{"eu", "us"}}, {Targets: []string{"eu"}}}, 1, 0},
		{waves.Plan{{Targets: []string{"eu"}}, {Targets: []string{"eu", "us"}}}, -1, 3},
		{waves.Plan{{Targets: []string{"eu"}}, {Percent: 10}, {Targets: []string{"us"}}}, -1, 4},
	} {
		p, err := c.p.Checked()
		empty, is := err.(*waves.EmptyError)
		if is != (c.empty >= 0) || is && empty.Wave != c.empty || !is && len(p) != c.waves {
			t.Errorf("%v: %v, %v", c.p, p, err)
		}
	}
}

// TestLabels: labels of a machine have one form, and bounds.
func TestLabels(t *testing.T) {
	if text, wrong := waves.Labels([]string{"zone=a", "tier=canary"}); text != "tier=canary,zone=a" || wrong != "" {
		t.Errorf("%q, %q", text, wrong)
	}
	for _, c := range []struct {
		list []string
		want string
	}{
		{[]string{"zone"}, "write KEY=VALUE"},
		{[]string{"a=b c"}, "write KEY=VALUE"},
		{[]string{"a=b", "a=c"}, "the key a is there twice"},
		{[]string{"a=" + strings.Repeat("b", 99)}, "at most 100 bytes"},
	} {
		if _, wrong := waves.Labels(c.list); !strings.Contains(wrong, c.want) {
			t.Errorf("%q: %q", c.list, wrong)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("key%d=%s", i, strings.Repeat("v", 80)))
	}
	if _, wrong := waves.Labels(many); !strings.Contains(wrong, "at most 1000 bytes") {
		t.Error(wrong)
	}
}
