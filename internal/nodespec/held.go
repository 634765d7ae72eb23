package nodespec

import (
	"encoding/json"
	"errors"
	"fmt"
)

// StoredSpec is the readable part of a NodeSpec on a host. The NodeSpec may come from an operator of another release.
type StoredSpec struct {
	NodeSpec
	// FormError is the error for the first field with a different form than in this release; nil if every field known
	// to this release was decoded.
	FormError error
}

// DecodeStoredSpec decodes the JSON form of any schema version as far as this release supports it.
func DecodeStoredSpec(data []byte) (StoredSpec, error) {
	var held StoredSpec
	err := json.Unmarshal(data, &held.NodeSpec)
	if err != nil && !json.Valid(data) {
		return StoredSpec{}, fmt.Errorf("decode NodeSpec: %w", err)
	}
	held.FormError = err // the decoder has continued with the remaining fields
	return held, nil
}

// HasForeignSchema reports whether the NodeSpec has another schema version.
func (h StoredSpec) HasForeignSchema() bool { return h.Schema != SchemaVersion }

// ValidateRenewal returns an error if certificates of the named identities cannot be renewed. A renewal
// depends only on the identities, so the schema version does not matter if the identities were decoded. An identity
// that a NodeSpec of this schema version lacks is no error: the node does not use it.
func (h StoredSpec) ValidateRenewal(names []string) error {
	if !h.HasForeignSchema() {
		return h.FormError
	}
	for _, name := range names {
		if !h.hasIdentity(name) {
			return fmt.Errorf("identity %s not found: the NodeSpec has schema version %d, but this agent supports %d",
				name, h.Schema, SchemaVersion)
		}
	}
	return nil
}

func (h StoredSpec) hasIdentity(name string) bool {
	for _, each := range h.Identities {
		if each.Name == name {
			return each.Directory != "" && each.CommonName != "" && each.Organization != ""
		}
	}
	return false
}

// ValidateChecks returns an error if this agent cannot verify the node with the NodeSpec's checks. A check
// of a later release may need features that this release lacks. Checks of an earlier release are supported, or fail
// by their kind.
func (h StoredSpec) ValidateChecks() error {
	switch {
	case h.Schema > SchemaVersion:
		return fmt.Errorf("the NodeSpec has schema version %d, but this agent supports up to %d: a later agent must verify the node",
			h.Schema, SchemaVersion)
	case h.FormError != nil:
		return h.FormError
	case h.HasForeignSchema() && len(h.Checks) == 0:
		return errors.New("the NodeSpec of an earlier release has no checks that this agent supports")
	}
	return nil
}
