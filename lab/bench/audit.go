package bench

import "github.com/windows-machine-config/wmco/lab/audit"

// requests counts a user's requests in the API server's audit log.
type requests struct {
	log    *audit.Log
	user   string
	reads  int
	writes int
	kinds  map[string]int
}

func newRequests(path, namespace, serviceAccount string) *requests {
	return &requests{log: audit.Open(path), user: audit.ServiceAccount(namespace, serviceAccount), kinds: map[string]int{}}
}

// update counts what was logged since the last time.
func (r *requests) update() error {
	events, err := r.log.Next()
	if err != nil {
		return err
	}
	for _, event := range events {
		r.count(event)
	}
	return nil
}

func (r *requests) count(event audit.Event) {
	if event.User.Username != r.user {
		return
	}
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		if event.Object.Resource == "leases" && event.Object.APIGroup == "coordination.k8s.io" {
			return // leader election is what an idle operator writes
		}
		r.writes++
		r.kinds[event.Verb+" "+event.Resource()]++
	default:
		r.reads++
	}
}
