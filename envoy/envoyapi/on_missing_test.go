package envoyapi

import (
	"testing"

	"xdspub/xds"
)

// TestOnMissing: each version has a row for every field of xds.References, and for no other field.
func TestOnMissing(t *testing.T) {
	for _, v := range Versions {
		rows := v.tables().onMissing
		for _, ref := range xds.References {
			if _, ok := rows[ref.Field]; !ok {
				t.Errorf("%s: on-missing.txt has no row for %s", v.Name, ref.Field)
			}
		}
		if len(rows) != len(xds.References) {
			t.Errorf("%s: on-missing.txt has %d rows for %d references", v.Name, len(rows), len(xds.References))
		}
	}
}
