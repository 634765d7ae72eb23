package robustness

import "slices"

// Shrink returns the smallest list of actions found that still fails, with at most the given number of calls of
// fails. It removes halves, then quarters and so on, and preserves the order.
func Shrink(actions []Action, attempts int, fails func([]Action) bool) []Action {
	for parts := 2; len(actions) > 1 && attempts > 0; {
		size := (len(actions) + parts - 1) / parts
		smaller := false
		for start := 0; start < len(actions) && attempts > 0; start += size {
			without := slices.Delete(slices.Clone(actions), start, min(start+size, len(actions)))
			attempts--
			if fails(without) {
				actions, smaller = without, true
				break
			}
		}
		switch {
		case smaller:
			parts = max(2, parts-1)
		case size == 1:
			return actions
		default:
			parts = min(2*parts, len(actions))
		}
	}
	return actions
}
