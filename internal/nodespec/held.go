package nodespec

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Held is what an agent can read of a NodeSpec that lies on a host. An operator of another release may have made it.
type Held struct {
	NodeSpec
	// Form is the fault of the first field that has another form than in this release; nil when each field that this
	// release knows could be read.
	Form error
}

// DecodeHeld reads the JSON form of any schema version as far as this release knows it.
func DecodeHeld(data []byte) (Held, error) {
	var held Held
	err := json.Unmarshal(data, &held.NodeSpec)
	if err != nil && !json.Valid(data) {
		return Held{}, fmt.Errorf("decode NodeSpec: %w", err)
	}
	held.Form = err // the decoder has gone on with the other fields
	return held, nil
}

// Foreign reports whether the NodeSpec is one of another schema version.
func (h Held) Foreign() bool { return h.Schema != SchemaVersion }

// RefuseRenewal says why certificates of the named identities cannot be renewed; nil if they can. Nothing but the
// identities is needed for that, so the schema version does not matter if they can be read. An identity that a NodeSpec
// of this schema version lacks is no fault: the node does without it.
func (h Held) RefuseRenewal(names []string) error {
	if !h.Foreign() {
		return h.Form
	}
	for _, name := range names {
		if !h.describes(name) {
			return fmt.Errorf("the NodeSpec has schema version %d, and this agent, which supports %d, does not find the identity %s in it",
				h.Schema, SchemaVersion, name)
		}
	}
	return nil
}

func (h Held) describes(name string) bool {
	for _, each := range h.Identities {
		if each.Name == name {
			return each.Directory != "" && each.CommonName != "" && each.Organization != ""
		}
	}
	return false
}

// RefuseChecks says why the NodeSpec's checks prove nothing when this agent does them; nil if they do. A check of a
// later release may need what this one does not know; checks of an earlier one are known, or fail by their kind.
func (h Held) RefuseChecks() error {
	switch {
	case h.Schema > SchemaVersion:
		return fmt.Errorf("the NodeSpec has schema version %d, but this agent supports up to %d: a later agent must check the node",
			h.Schema, SchemaVersion)
	case h.Form != nil:
		return h.Form
	case h.Foreign() && len(h.Checks) == 0:
		return errors.New("the NodeSpec is of an earlier release, and has no checks that this agent could do")
	}
	return nil
}
