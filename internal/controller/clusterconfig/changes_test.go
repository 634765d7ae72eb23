package clusterconfig

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestSource_ChangeWaitsForNoReader(t *testing.T) {
	s := NewSource(nil, "wmco")
	idle, busy := s.Changes(), s.Changes()
	for _, version := range []string{"4.20.1", "4.20.2", "4.20.3"} {
		s.storeAndNotify(t.Context(), nodespec.Cluster{Version: version}, nil)
		s.storeAndNotify(t.Context(), nodespec.Cluster{Version: version}, nil)
		<-busy
	}
	if len(idle) != 1 || len(busy) != 0 {
		t.Errorf("the readers have %d and %d events waiting, want 1 and 0", len(idle), len(busy))
	}
}
