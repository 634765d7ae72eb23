package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// preflight stops before anything is changed on a host from which a kubelet could not reach the API server. The host
// itself has tried it: what it resolves and reaches is not what the operator does. A host that has joined before is not
// held up: its kubelet tells.
func preflight(_ context.Context, s *scope.Scope) *result.Result {
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.UID != "" {
		return nil
	}
	o := result.APIServerUnreachable(s.Host.Facts.APIServer)
	if o != nil {
		s.Host.Facts = nil // the next attempt asks the host again
	}
	return o
}
