package collect

import (
	"fmt"
	"slices"
	"sort"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// Reserve for the rest of the line: its time, and the notes about omitted entries.
const spareBytes, spareValues = 4 << 10, 200

// Fit removes the least needed entries of a result that is too long for one line, and reports their number.
func Fit(result *agentapi.Result) {
	fits := func() bool {
		line, err := agentapi.Line{Type: agentapi.TypeResult, Result: result}.Encode()
		return err == nil && len(line) <= agentapi.MaxLineBytes-spareBytes && agentapi.CountValues(line) <= agentapi.MaxLineValues-spareValues
	}
	if fits() {
		return
	}
	s, notes := result.Collected, map[string]string{}
	// Newest first, with a stable order within each log.
	slices.SortStableFunc(s.Events, func(a, b agentapi.Event) int { return b.Time.Compare(a.Time) })
	for _, part := range []struct {
		name, which string
		cut         func() (dropped, of int)
	}{
		{"events", "oldest ", func() (int, int) { return cutToFit(&s.Events, fits) }},
		{"networks", "endpoints: last ", func() (int, int) { return cutToFit(&s.Endpoints, fits) }},
		{"firewall", "last ", func() (int, int) { return cutToFit(&s.Firewall, fits) }},
		{"runs", "last ", func() (int, int) { return cutToFit(&s.Runs, fits) }},
		{"processes", "last ", func() (int, int) { return cutToFit(&s.Processes, fits) }},
		{"services", "last ", func() (int, int) { return cutToFit(&s.Services, fits) }},
	} {
		if dropped, of := part.cut(); dropped > 0 {
			notes[part.name] = fmt.Sprintf("%s%d of %d omitted to limit the size of the result", part.which, dropped, of)
		}
		if fits() {
			break
		}
	}
	for part, note := range notes {
		if before := s.Unknown[part]; before != "" {
			note = before + "; " + note
		}
		s.Unknown[part] = note
	}
}

// cutToFit shortens a list until the result fits, possibly to an empty list.
func cutToFit[T any](list *[]T, fits func() bool) (dropped, of int) {
	all := *list
	dropped = sort.Search(len(all), func(n int) bool {
		*list = all[:len(all)-n]
		return fits()
	})
	*list = all[:len(all)-dropped]
	return dropped, len(all)
}
