package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// checkAPIServerAccess refuses a host that cannot reach the API server, before the host is changed. The check runs on
// the host, because name resolution and routes differ from those in the operator's pod. A host that has joined before
// is not refused: its kubelet reports the failure.
func checkAPIServerAccess(_ context.Context, s *scope.Scope) *result.Result {
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.UID != "" {
		return nil
	}
	o := result.APIServerUnreachable(s.Host.Facts.APIServer)
	if o != nil {
		s.Host.Facts = nil // the next attempt reads the facts again
	}
	return o
}
