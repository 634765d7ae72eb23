package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Part is a part of a run that can be measured alone.
type Part string

// Parts, in the order in which they are measured.
const (
	// PartTransfers is the way of a payload to one host.
	PartTransfers Part = "transfers"
	// PartWhole is one host with a payload of the real size.
	PartWhole Part = "whole"
	// PartArrival is a new Machine, in virtual time.
	PartArrival Part = "arrival"
	// PartJoins are a few hosts at several round trips, and what must cost nothing then.
	PartJoins Part = "joins"
	// PartFleets are many hosts at once.
	PartFleets Part = "fleets"
)

func allParts() []Part {
	return []Part{PartTransfers, PartWhole, PartArrival, PartJoins, PartFleets}
}

// quickParts returns the parts of a quick run.
func quickParts() []Part { return []Part{PartTransfers, PartJoins} }

// take takes what another run has measured of a part.
func (r *Result) take(part Part, other Result) {
	switch part {
	case PartTransfers:
		r.Transfers, r.Transferred, r.Real, r.Patches, r.HashSpeed = other.Transfers, other.Transferred, other.Real, other.Patches, other.HashSpeed
	case PartWhole:
		r.Whole = other.Whole
	case PartArrival:
		r.Arrival = other.Arrival
	case PartJoins:
		r.Joins, r.Quiets = other.Joins, other.Quiets
	case PartFleets:
		r.Fleets = other.Fleets
	}
	r.Parts[part] = other.Parts[part]
}

// complete adds the parts that are not measured now, from the file of an earlier run, if there is one.
func (r *Result) complete(measured []Part, file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the results of an earlier run: %w", err)
	}
	var earlier Result
	if err := json.Unmarshal(data, &earlier); err != nil {
		return fmt.Errorf("read the results of an earlier run: %s: %w: delete it", file, err)
	}
	for _, part := range allParts() {
		if _, known := earlier.Parts[part]; known && !slices.Contains(measured, part) {
			r.take(part, earlier)
		}
	}
	return nil
}
