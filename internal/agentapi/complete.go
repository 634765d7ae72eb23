package agentapi

import (
	"fmt"
	"slices"
)

// CheckComplete returns an error if the last line of an agent command lacks a required part. The host is not trusted
// to send genuine output of the agent.
func CheckComplete(name Name, last Line) error {
	if last.Type == TypeRebooting && slices.Contains([]Name{Apply, Remove, Rollback, Reboot}, name) {
		return nil
	}
	r := last.Result
	ok := r != nil
	switch {
	case !ok:
	case name == Facts, name == Inspect:
		ok = r.Facts != nil
	case name == Collect:
		ok = r.Facts != nil && r.Collected != nil
	case name == Plan:
		ok = r.Plan != nil
	case name == Apply, name == Rollback, name == Renew:
		ok = r.Facts != nil && r.Plan != nil
	}
	if !ok {
		return fmt.Errorf("the response of agent command %s is incomplete: the program on the host is not the operator's agent or has another version",
			name)
	}
	return nil
}
