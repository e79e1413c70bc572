package serve

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestLimits checks that each limit can be set, has a default, and is documented with the default.
func TestLimits(t *testing.T) {
	doc, err := os.ReadFile("../docs/serve-security.md")
	if err != nil {
		t.Fatal(err)
	}
	all := Limits{}.orDefault()
	if all != DefaultLimits {
		t.Errorf("defaults %v", all)
	}
	if n := reflect.TypeFor[Limits]().NumField(); n != len(all.list()) {
		t.Errorf("%d limits, %d with a name", n, len(all.list()))
	}
	for i, l := range all.list() {
		value, set := "", "7"
		if l.count != nil {
			value = fmt.Sprint(*l.count)
		} else {
			value, set = strings.TrimSuffix(l.time.String(), "0s"), "7s"
			if l.time.Seconds() < 60 {
				value = l.time.String()
			}
		}
		if row := "| `" + l.name + "` | " + value + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("not documented: %s", row)
		}
		var given Limits
		if err := given.Set(l.name + "=" + set); err != nil {
			t.Error(err)
		}
		is := given.list()[i]
		if is.count != nil && *is.count != 7 || is.time != nil && *is.time != 7*time.Second {
			t.Errorf("%s is not set", l.name)
		}
		for _, bad := range []string{"", "=", "=0", "=-1", "=many", "=1e9", "=0s", "=-1s", "=99999999999"} {
			if err := given.Set(l.name + bad); err == nil {
				t.Errorf("%s%s is taken", l.name, bad)
			}
		}
	}
	if err := new(Limits).Set("much=1"); err == nil {
		t.Error("an unknown limit is taken")
	}
}
