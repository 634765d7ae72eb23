package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestARunOfSomePartsKeepsTheOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	r := Result{Parts: map[Part]Machine{}}
	if err := r.complete([]Part{PartFleets}, file); err != nil || len(r.Parts) > 0 {
		t.Errorf("where there was no other run: %v, error %v", r.Parts, err)
	}
	earlier := good()
	earlier.HashSpeed = 1e9
	earlier.Parts = map[Part]Machine{PartTransfers: {Day: "a"}, PartWhole: {Day: "b"}, PartArrival: {Day: "c"}, PartFleets: {Day: "d"}}
	data, err := json.Marshal(earlier)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Fleets = goodFleets()[:1]
	if err := r.complete([]Part{PartFleets}, file); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Transfers, earlier.Transfers) || r.HashSpeed != 1e9 || r.Whole == nil || r.Arrival == nil || r.Parts[PartWhole].Day != "b" {
		t.Errorf("the parts of the other run are missing: %+v", r)
	}
	if len(r.Fleets) != 1 || r.Parts[PartFleets].Day != "" {
		t.Error("what was measured now is replaced by what was measured before")
	}
	if len(r.Joins) > 0 || len(r.Quiets) > 0 {
		t.Error("a part that the other run has not measured is taken from it")
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.complete(nil, file); err == nil {
		t.Error("a broken file is no error")
	}
}

func TestFleetsOfARun(t *testing.T) {
	runs := fleetRuns([]int{300, 20, 100})
	if len(runs) != 5 || runs[0].sizePercent != realSize || runs[1].hosts != 1 {
		t.Fatalf("%+v", runs)
	}
	small, middle, large := runs[2], runs[3], runs[4]
	if small.hosts != 20 || len(small.occasions) != 1 || middle.hosts != 100 || len(middle.occasions) != 0 || large.hosts != 300 || len(large.occasions) != 4 {
		t.Errorf("%+v", runs)
	}
	if only := fleetRuns([]int{20})[2]; len(only.occasions) != 5 {
		t.Errorf("everything happens to the only fleet: %+v", only)
	}
}
