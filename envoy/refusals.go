package envoy

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"xdspub/diag"
)

// Refusal is the refusal of a resource or file, as an Envoy reports it.
type Refusal struct {
	API      string // as in Subscription; "" if unknown
	Resource string // the name; "" if unknown
	File     string // the path as Envoy has it; "" if unknown
	// Message is Envoy's message without quotes of files, which may hold keys; "" if Envoy gives no reason.
	Message string
}

// Refusals returns the listeners that the Envoy has refused since a time by Envoy's clock, sorted by name. Envoy
// keeps no record of other refused resources; its log has their refusals.
func (a *Admin) Refusals(ctx context.Context, since time.Time) ([]Refusal, error) {
	s := a.session()
	defer s.close()
	query := url.Values{
		"resource": {"dynamic_listeners"},
		"mask":     {"name,error_state.details,error_state.last_update_attempt"},
	}
	status, body, err := s.exchange(ctx, configDump, query, maxDump)
	if err != nil {
		return nil, err
	}
	var dump struct {
		Configs []struct {
			Name  string
			Error struct {
				Details string
				At      time.Time `json:"last_update_attempt"`
			} `json:"error_state"`
		}
	}
	if status != http.StatusOK || json.Unmarshal(body, &dump) != nil {
		return nil, a.unexpected(configDump, sample(body))
	}
	var list []Refusal
	for _, l := range dump.Configs {
		// The dump has each refused listener twice, the second time without name and time.
		if l.Name != "" && l.Error.Details != "" && !l.Error.At.Before(since.Truncate(time.Millisecond)) {
			list = append(list, Refusal{API: "LDS", Resource: diag.Clip(l.Name, diag.MaxWord), Message: reason(l.Error.Details)})
		}
	}
	slices.SortFunc(list, func(a, b Refusal) int { return cmp.Compare(a.Resource, b.Resource) })
	return list, nil
}
